import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { getModule, listAgents } from '@muster/protocol/http';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { makeCertificate } from '../../../test/certificate.ts';
import { type Seen, type Standing, standIn } from '../../../test/orchestrator.ts';
import { makeHome, musterHere } from '../../../test/process.ts';

function folderOf(files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), 'muster-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), content);
  }
  return folder;
}

const facts = 'attributes: { platform: linux }\n';
const web = `name: web
supports: [{ platform: linux }]
requires: [{ module: base, with: { motd: from web } }]
parameters: { port: { type: integer, default: 80 } }
resources:
  - id: site
    resource: { file-unix: { path: /etc/site, template: files/site.conf } }
`;
const base = `name: base
supports: [{ platform: linux }]
parameters: { motd: { type: string } }
resources:
  - id: motd
    resource: { file-unix: { path: /etc/motd, content: "\${{ param.motd }}" } }
`;
const website = { 'web/module.yml': web, 'web/files/site.conf': 'listen ${{ param.port }}\n' };

describe('without an orchestrator', () => {
  const muster = (...args: string[]) => musterHere(args, {});

  test('reads the files of a module that is specified as a folder, or as its module.yml', async () => {
    const folder = folderOf({ ...website, 'base.yml': base, 'facts.yml': facts });
    for (const path of ['web', 'web/module.yml', './web', 'web/.', 'web//']) {
      const args = [`${folder}/${path}`, join(folder, 'base.yml'), '--facts', join(folder, 'facts.yml'), '--json'];
      const { exit, stdout, stderr } = await muster('modules', 'resolve', ...args);
      expect(exit, stderr).toBe(0);
      expect(JSON.parse(stdout)).toMatchObject({
        resources: [
          { id: 'motd', fields: { content: { value: 'from web' } } },
          { id: 'site', fields: { content: { value: 'listen 80\n' } } },
        ],
      });
    }
    const module = ['--module', join(folder, 'web'), '--facts', join(folder, 'facts.yml')];
    expect((await muster('modules', 'eval', 'param.port + 1', ...module)).stdout).toBe('81\n');
  });

  test('modules deps finds required modules next to the files', async () => {
    const folder = folderOf({ ...website, 'base.yml': base });
    const idsOf = async () => {
      const { exit, stdout, stderr } = await muster('modules', 'deps', join(folder, 'web'), '--json');
      expect(exit, stderr).toBe(0);
      return { ids: JSON.parse(stdout).resources.map(({ id }: { id: string }) => id), stderr };
    };
    expect(await idsOf()).toEqual({ ids: ['motd', 'site'], stderr: '' });
    rmSync(join(folder, 'base.yml'));
    expect((await idsOf()).ids).toEqual(['site']);
    const { stderr } = await muster('modules', 'deps', join(folder, 'web'));
    expect(stderr).toContain('lacks required modules that are not next to the files: base');
  });

  test('names a required module that was not specified', async () => {
    const folder = folderOf({ ...website, 'facts.yml': facts });
    const args = [join(folder, 'web'), '--facts', join(folder, 'facts.yml')];
    const { exit, stderr } = await muster('modules', 'resolve', ...args);
    expect(exit).toBe(1);
    expect(stderr).toContain(
      'module.yml:3:12 module "web" requires "base", which is not among the given modules: add it',
    );
  });

  test('modules test finds required modules in the specified directory', async () => {
    const tests = `agent: { ${facts.trim()} }
parameters: { port: 81 }
expect: { resources: { site: { file-unix: { content: "listen 81\\n" } }, motd: { file-unix: { content: from web } } } }
`;
    const folder = folderOf({ ...website, 'web/tests/a.yml': tests, 'base/module.yml': base });
    const passed = await muster('modules', 'test', folder);
    expect(passed.exit, passed.stdout + passed.stderr).toBe(0);
    const alone = await muster('modules', 'test', join(folder, 'web'));
    expect(alone.exit).toBe(1);
    expect(alone.stdout).toContain('module "web" requires "base", which is not among the given modules');
    writeFileSync(join(folder, 'copy.yml'), base);
    const twice = await muster('modules', 'test', folder);
    expect(twice.exit).toBe(1);
    expect(twice.stderr).toContain('the required module "base" is in ');
  });
});

describe('with an orchestrator', () => {
  let home: Awaited<ReturnType<typeof makeHome>>;
  let server: Standing;
  let env: Record<string, string>;

  beforeAll(async () => {
    const certificate = await makeCertificate();
    const file = { path: 'files/site.conf', sha256: '0'.repeat(64), size: 25, executable: false };
    const stored: Readonly<Record<string, object>> = { web: { content: web, files: [file] }, base: { content: base } };
    const { attributes: _, ...agent } = listAgents.example.answer[0] as Record<string, unknown>;
    server = await standIn({
      tls: certificate,
      answers: {
        getModule: ({ params: { name = '' } }: Seen) =>
          Object.hasOwn(stored, name)
            ? { body: { ...getModule.example.answer, name, files: [], ...stored[name] } }
            : { code: 'module_not_found', detail: `there is no module ${name}` },
        getModuleFile: ({ query }: Seen) =>
          query.path === file.path ? { text: 'stored ${{ param.port }}\n' } : undefined,
        listAgents: () => ({ body: [{ ...agent, attributes: { platform: 'linux' } }] }),
        getAgent: () => ({ body: { ...agent, attributes: { platform: 'linux' } } }),
      },
    });
    home = await makeHome();
    env = { ...home.env, MUSTER_URL: server.url, MUSTER_FINGERPRINT: certificate.fingerprint };
    await musterHere(['operator', 'init'], env);
  });
  afterAll(async () => {
    await server.close();
    await home.remove();
  });

  test('reads stored modules with their files, and the modules that they require', async () => {
    const { exit, stdout, stderr } = await musterHere(['modules', 'resolve', 'web', '--agent', 'web-1', '--json'], env);
    expect(exit, stderr).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      resources: [
        { id: 'motd', fields: { content: { value: 'from web' } } },
        { id: 'site', fields: { content: { value: 'stored 80\n' } } },
      ],
    });
  });

  test('reads the modules that a file requires', async () => {
    const folder = folderOf(website);
    const args = ['modules', 'resolve', join(folder, 'web'), '--agent', 'web-1', '--json'];
    const { exit, stdout, stderr } = await musterHere(args, env);
    expect(exit, stderr).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ resources: [{ id: 'motd' }, { id: 'site' }] });
  });
});
