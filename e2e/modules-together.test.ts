import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { applyAgent, getModule, getState, planAgent, removeModule, uploadModule } from '@muster/protocol/http';
import { expect } from 'vitest';
import { describeAnyDatabase } from './any-database.ts';
import { test } from './harness.ts';

describeAnyDatabase('modules together', (startWith) => {
  test('modules can share a resource and require each other, and a required module cannot be removed', async ({
    stage,
  }) => {
    const orchestrator = await startWith(stage);
    const { call } = orchestrator;
    await stage.agent(orchestrator, 'web-1');
    const [shared, log, conf, page] = ['shared', 'log', 'conf', 'page'].map((name) => join(stage.dir, name)) as [
      string,
      string,
      string,
      string,
    ];
    const file = (path: string, fields: object) => ({ resource: { 'file-unix': { path, ...fields } } });
    const service = (fields: object) => ({
      id: 'service',
      resource: { script: { program: 'sh', manages: 'service', apply: `echo reloaded >> ${log}`, ...fields } },
    });
    const upload = (name: string, text: string, rest: object, resources: object[]) =>
      call(uploadModule, {
        body: {
          name,
          content: JSON.stringify({ name, supports: [{ platform: 'linux' }], ...rest, 'x-note': text, resources }),
        },
      });
    const parameters = { mode: { type: 'string', default: '0600' } };
    const site = (text: string) =>
      upload('site', text, { requires: [{ module: 'base', with: { mode: '0640' } }] }, [
        { id: 'page', ...file(page, { content: text }), notify: [{ rerun: 'base:service' }] },
        { id: 'shared', depends_on: ['absent:thing?'], ...file(shared, { content: 'site' }) },
        service({ rerun_on: ['page'], check: 'true' }),
      ]);
    await expect(site('1')).rejects.toMatchObject({ problem: { code: 'module_invalid' } });
    await upload('base', '', { parameters }, [
      { id: 'conf', ...file(conf, { content: 'a' }) },
      { id: 'shared', ...file(shared, { mode: '${{ param.mode }}' }) },
      service({ rerun_on: ['conf'] }),
    ]);
    await site('1');
    const params = { node_id: 'web-1' };
    const apply = (...modules: string[]) => call(applyAgent, { params, body: { modules } });

    const first = await apply('site');
    expect(first).toMatchObject({ status: 'succeeded' });
    expect(first.resources.map(({ module, identity }) => `${module} ${identity}`).sort()).toEqual(
      [`base ${conf}`, `base ${shared}`, 'base service', `site ${page}`].sort(),
    );
    expect(readFileSync(shared, 'utf8')).toBe('site');
    expect(statSync(shared).mode & 0o777).toBe(0o640);
    expect(readFileSync(log, 'utf8')).toBe('reloaded\n');

    await site('2');
    const planned = await call(planAgent, { params, body: { modules: ['site'] } });
    expect(planned.resources.at(-1)).toMatchObject({ action: 'run', triggered_by: ['page'] });
    expect((await apply('site')).resources.at(-1)).toMatchObject({ action: 'run', triggered_by: ['page'] });
    expect(readFileSync(log, 'utf8')).toBe('reloaded\nreloaded\n');

    await expect(call(removeModule, { params: { name: 'base' } })).rejects.toMatchObject({
      problem: { status: 409, code: 'module_in_use', detail: expect.stringContaining('site') },
    });
    expect(await call(getModule, { params: { name: 'base' } })).toMatchObject({ required_by: ['site'] });

    // Without `site`, the shared file keeps the content that `base` declares.
    expect(await apply('base')).toMatchObject({ status: 'succeeded' });
    expect([existsSync(page), existsSync(shared)]).toEqual([false, true]);
    expect(statSync(shared).mode & 0o777).toBe(0o600);
    expect((await call(getState, { params })).applied.map(({ module }) => module)).toEqual(['base', 'base', 'base']);
    await call(removeModule, { params: { name: 'site' } });
    await call(removeModule, { params: { name: 'base' } });
  });
});
