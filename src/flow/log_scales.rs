//! How near the log-scales of affine couplings are to their bound (docs/model.md, Couplings).

use super::Flow;
use super::programs::Name;
use crate::data::side_by_side;
use crate::engine::Job;
use crate::error::Result;
use crate::plan::{Kind, Scale, Transform};

/// A log-scale is saturated if it uses more than this share of its bound.
const SATURATED: f64 = 0.95;

/// Rows that are looked at together: all networks of the model leave what they have for each.
const PIECE: usize = 256;

impl Flow {
    /// The share of the log-scales of rows x, given as many rows y, that use more than 95 % of their bound: where many do,
    /// couplings would stretch further than they can. None of a model whose log-scales have no bound, or that has none.
    pub(crate) fn saturated_log_scales(&self, y: &[f32], x: &[f32]) -> Result<Option<f64>> {
        let spec = &self.plan.spec;
        if spec.kind == Kind::Inn || spec.coupling != Transform::Affine || !matches!(spec.scale, Scale::Atan { .. }) {
            return Ok(None);
        }
        // Of atan.
        let most = (SATURATED * std::f64::consts::FRAC_PI_2).tan();
        let (c, n) = (spec.cond_dim as usize, spec.dim as usize);
        let (mut all, mut saturated) = (0u64, 0u64);
        for (piece, x) in x.chunks(PIECE * n).enumerate() {
            let rows = x.len() / n;
            let y = &y[piece * PIECE * c..][..rows * c];
            let y = self.y.inner(y)?;
            let x = self.x.given(&y).inner(x)?;
            let joined = side_by_side(&y, &x, rows);
            let inputs: &[&[f32]] = match spec.kind {
                Kind::Flow => &[&x],
                Kind::Cinn | Kind::Inn => &[&x, &y],
                Kind::Hint => &[&joined],
            };
            let outputs = self.run(Name::NetworkOutputs, &Job { rows, inputs, ..Job::default() })?;
            // In the order of the pass.
            let stages = self.plan.blocks.iter().flat_map(|block| &self.plan.stages[block.stages.clone()]);
            for (stage, outputs) in stages.zip(outputs) {
                for row in outputs.chunks_exact(stage.st_rows as usize) {
                    for node in &stage.nodes {
                        let scales = &row[node.st as usize..][..node.lower as usize];
                        all += scales.len() as u64;
                        saturated += scales.iter().filter(|a| f64::from(a.abs()) > most).count() as u64;
                    }
                }
            }
        }
        Ok((all > 0).then(|| saturated as f64 / all as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Engine;
    use crate::flow::FlowBuilder;
    use crate::plan::Spline;
    use crate::rng::{Stream, fill_normals};

    fn normals(count: usize) -> Vec<f32> {
        let mut values = vec![0.0; count];
        fill_normals(1, Stream::Data, 0, 0, &mut values);
        values
    }

    #[test]
    fn saturated_log_scales_are_counted() {
        let engine = Engine::cpu().unwrap();
        let builders: [FlowBuilder; 3] = [Flow::builder(5), Flow::cinn_builder(5, 3), Flow::hint_builder(5, 3)];
        for builder in builders {
            let flow = builder.width(8).blocks(2).init_sigma(0.01).build(&engine).unwrap();
            let rows = PIECE + 10;
            let (x, y) = (normals(5 * rows), normals(flow.spec().cond_dim as usize * rows));
            assert_eq!(flow.saturated_log_scales(&y, &x).unwrap(), Some(0.0));
            // The first log-scale of every node but those of the first block is far out, whatever the rows are.
            let plan = flow.plan().clone();
            let mut file = flow.to_file().unwrap();
            let mut far = 0;
            let stages = |block: &crate::plan::Block| plan.stages[block.stages.clone()].to_vec();
            for node in stages(&plan.blocks[1]).iter().flat_map(|stage| &stage.nodes) {
                file.weights[node.nets[0].bias[2] as usize] = -50.0;
                far += 1;
            }
            let all: u32 =
                plan.blocks.iter().flat_map(stages).flat_map(|stage| stage.nodes).map(|node| node.lower).sum();
            let flow = Flow::from_file(file, &engine).unwrap();
            let share = flow.saturated_log_scales(&y, &x).unwrap().unwrap();
            approx::assert_abs_diff_eq!(share, f64::from(far) / f64::from(all), epsilon = 1e-12);
        }
        // What has no bound is not near it.
        let spline = Transform::Spline(Spline::default());
        let flow = Flow::builder(3).coupling(spline).build(&engine).unwrap();
        assert_eq!(flow.saturated_log_scales(&[], &normals(30)).unwrap(), None);
        let flow = Flow::builder(3).scale(Scale::Exp).build(&engine).unwrap();
        assert_eq!(flow.saturated_log_scales(&[], &normals(30)).unwrap(), None);
    }
}
