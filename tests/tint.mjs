// Has Dawn's compiler of WGSL, Tint, read every .wgsl file of a folder, on a device that computes nothing.
//
//   node tint.mjs NODE_MODULES FOLDER
import { readFileSync, readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const [modules, folder] = process.argv.slice(2);
const { create } = await import(pathToFileURL(join(resolve(modules), 'webgpu/index.js')));
const gpu = create(['backend=null']);
const adapter = await gpu.requestAdapter();
// Dawn crashes once these two have been collected as garbage.
globalThis.kept = [gpu, adapter];
// As many storage buffers as the kernels bind.
const most = adapter.limits.maxStorageBuffersPerShaderStage;
const device = await adapter.requestDevice({ requiredLimits: { maxStorageBuffersPerShaderStage: most } });
const files = readdirSync(folder).filter((name) => name.endsWith('.wgsl'));
let bad = 0;
for (const name of files) {
    device.pushErrorScope('validation');
    const code = readFileSync(join(folder, name), 'utf8');
    const module = device.createShaderModule({ code });
    device.createComputePipeline({ layout: 'auto', compute: { module, entryPoint: 'main' } });
    const error = await device.popErrorScope();
    if (error) {
        bad += 1;
        console.error(`${name}: ${error.message}`);
    }
}
console.log(`${files.length} shaders, ${bad} refused`);
// Not `process.exit`, which takes threads of Dawn by surprise.
device.destroy();
process.exitCode = bad > 0 ? 1 : 0;
