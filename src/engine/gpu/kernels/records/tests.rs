//! What shaders read records with, without a device: it finds the words where the host's structs have them.

use super::*;
use naga::{BinaryOperator, Expression, Function, Handle, Literal, Module, Statement};

/// Everything that is ever written for shaders.
fn module() -> Module {
    let mut text = "@group(0) @binding(2) var<storage, read> tables: array<u32>;\n".to_owned();
    for record in ALL {
        text.push_str(&record.size());
        if record.fields.iter().all(Field::is_word) {
            text.push_str(&record.whole());
        }
        text.extend(record.fields.iter().map(|field| field.accessor(record.prefix)));
    }
    naga::front::wgsl::parse_str(&text).unwrap_or_else(|e| panic!("{}", e.emit_to_string(&text)))
}

fn function<'a>(module: &'a Module, name: &str) -> Option<&'a Function> {
    module.functions.iter().map(|(_, f)| f).find(|f| f.name.as_deref() == Some(name))
}

/// What a function returns, word by word.
fn call(function: &Function, arguments: &[u32], tables: &[u32]) -> Vec<u32> {
    let value = function.body.iter().find_map(|statement| match statement {
        Statement::Return { value } => *value,
        _ => None,
    });
    evaluate(function, value.unwrap(), arguments, tables)
}

fn evaluate(function: &Function, expression: Handle<Expression>, arguments: &[u32], tables: &[u32]) -> Vec<u32> {
    let of = |expression: Handle<Expression>| evaluate(function, expression, arguments, tables);
    match function.expressions[expression] {
        Expression::FunctionArgument(number) => vec![arguments[number as usize]],
        Expression::Literal(Literal::U32(value)) => vec![value],
        Expression::Binary { op: BinaryOperator::Add, left, right } => vec![of(left)[0] + of(right)[0]],
        Expression::Binary { op: BinaryOperator::Multiply, left, right } => vec![of(left)[0] * of(right)[0]],
        // Tables are the only variable.
        Expression::Load { pointer } => of(pointer),
        Expression::Access { index, .. } => vec![tables[of(index)[0] as usize]],
        Expression::AccessIndex { index, .. } => vec![tables[index as usize]],
        Expression::Compose { ref components, .. } => components.iter().flat_map(|&component| of(component)).collect(),
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn shaders_read_the_words_of_the_fields() {
    let module = module();
    // No word is the place of one.
    let tables: Vec<u32> = (0..100).map(|i| 1000 + i).collect();
    let at = 3;
    for record in ALL {
        let mut words = Vec::new();
        for field in record.fields {
            let name = format!("{}_{}", record.prefix, field.name);
            let function = function(&module, &name).unwrap();
            assert_eq!(function.arguments.len(), 1 + usize::from(field.step.is_some()), "{name}");
            let own = (field.words)(&tables[at..]);
            for (number, element) in own.chunks(field.step.unwrap_or(own.len())).enumerate() {
                let value = call(function, &[at as u32, number as u32], &tables)[0];
                let read = if field.nested { &tables[value as usize..][..element.len()] } else { &[value] };
                assert_eq!(read, element, "{name}, {number}");
            }
            words.extend(own);
        }
        assert_eq!(words, tables[at..][..record.words], "{}", record.name);
        if let Some(whole) = function(&module, &format!("{}_at", record.prefix)) {
            assert_eq!(call(whole, &[at as u32], &tables), words, "{}", record.name);
        }
        let size = module.constants.iter().find(|(_, c)| c.name.as_ref() == Some(&record.size_name())).unwrap().1;
        let size = &module.global_expressions[size.init];
        assert!(matches!(size, Expression::Literal(Literal::U32(n)) if *n as usize == record.words), "{size:?}");
    }
}

/// Text of every shader, and of every part of one.
fn shaders() -> Vec<String> {
    let root = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or(env!("CARGO_MANIFEST_DIR").into());
    let folder = std::path::Path::new(&root).join("shaders");
    let files = [folder.clone(), folder.join("shared")].map(|folder| std::fs::read_dir(folder).unwrap());
    let paths = files.into_iter().flatten().map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    paths.map(|path| std::fs::read_to_string(path).unwrap()).collect()
}

/// A number in place of a field would go wrong without notice once the record changes.
#[test]
fn shaders_read_tables_by_fields_alone() {
    let shaders = shaders();
    assert!(shaders.iter().any(|text| text.contains("tables: array<u32>")));
    for text in shaders {
        assert!(!text.contains("tables["), "{text}");
    }
}

#[test]
fn every_field_is_read() {
    let text = accessors(&shaders().concat());
    for record in ALL {
        let reads = |name: &str| text.contains(&format!("fn {}_{name}(", record.prefix));
        for field in record.fields {
            assert!(reads("at") || reads(field.name), "{}::{}", record.name, field.name);
        }
    }
}

#[test]
fn a_shader_gets_what_it_uses() {
    let text = accessors("let a = chain_at(first); let b = node_panels(at + narrow_pack_hidden(x), 1u) * ITEM_WORDS;");
    let expected = "
fn node_panels(at: u32, number: u32) -> u32 { return at + 12u + number * 6u; }

struct Chain { links: u32, count: u32, sum: u32 }
fn chain_at(at: u32) -> Chain { return Chain(tables[at + 0u], tables[at + 1u], tables[at + 2u]); }

const ITEM_WORDS: u32 = 3u;

fn narrow_pack_hidden(at: u32) -> u32 { return at + 0u; }
";
    assert_eq!(text, expected);
}
