// Makes the component of the project in the current folder, for the script `build` of its package.json: `maka-policy build`
// calls that with the file to write, and adds the manifest section. The project passes `componentize`, so that it is the
// project that says where that comes from and in which version.
//
// The engine keeps the names of the folders that it read from, so it reads from a folder that tells nothing about this
// machine: src/, maka/sdk-js/sdk.js and manifest.js, which is manifest.json as a module.

import { cp, mkdtemp, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

export async function build(componentize) {
  const project = process.cwd();
  const out = resolve(project, process.argv[2] ?? 'component.wasm');
  const sdk = fileURLToPath(new URL('.', import.meta.url));
  const stage = await mkdtemp(join(await realpath(tmpdir()), 'maka-policy-'));
  try {
    await cp(join(project, 'src'), join(stage, 'src'), { recursive: true });
    await cp(join(sdk, 'sdk.js'), join(stage, 'maka/sdk-js/sdk.js'));
    await cp(join(sdk, '../wit/policy.wit'), join(stage, 'policy.wit'));
    const manifest = JSON.parse(await readFile(join(project, 'manifest.json'), 'utf8'));
    await writeFile(join(stage, 'manifest.js'), `export default ${JSON.stringify(manifest)};\n`);
    process.chdir(stage);
    const { component } = await componentize({
      sourcePath: 'src/policy.js',
      witPath: 'policy.wit',
      worldName: 'policy',
      // All of them: a policy may import nothing.
      disableFeatures: ['stdio', 'random', 'clocks', 'http', 'fetch-event'],
    });
    await writeFile(out, component);
  } finally {
    process.chdir(project);
    await rm(stage, { recursive: true, force: true });
  }
}
