import { MusterError } from '@muster/protocol';
import type { Agent } from '@muster/protocol/http';
import { expect, test } from 'vitest';
import { describeAnyDatabase } from '../../../test/databases/databases.ts';
import { newAdmin, newAgent, openDomain } from '../../../test/domain.ts';
import { getAgent } from '../agents/agents.ts';
import { currentDesiredSet } from '../operations/resolve-agent.ts';
import { createAssignment, updateAssignment } from './assignments.ts';
import { orderModules } from './module-order.ts';
import { getModule, removeModule, uploadModule } from './modules.ts';

const source = (name: string, more = '') => `
name: ${name}
supports: [{ platform: linux }]
${more}
resources: [{ id: f, resource: { file-unix: { path: /${name}, content: "\${{ param.text }}" } } }]
parameters: { text: { type: string, default: none } }
`;
const requiring = (...names: string[]) => `requires: [${names.map((name) => `{ module: ${name} }`).join(', ')}]`;

describeAnyDatabase('modules that require others', (fixture) => {
  const open = async () => {
    const domain = await openDomain(fixture);
    const { context } = domain;
    const { actor } = await newAdmin(domain);
    const upload = (name: string, more = '') => uploadModule(context, actor, name, source(name, more));
    const found = (promise: Promise<unknown>) =>
      promise.then(
        () => 'done',
        (error: unknown) => {
          if (!(error instanceof MusterError)) throw error;
          const [fault] = error.errors ?? [];
          return fault === undefined
            ? `${error.code} ${error.message}`
            : `${error.code} ${fault.line ?? '-'} ${fault.path} ${fault.message}`;
        },
      );
    const set = async (agent: Agent, modules: string[] = []) => {
      const { desired, resolved } = await currentDesiredSet(context, agent, modules);
      return { ...desired, texts: resolved.resources.map(({ identity, body }) => `${identity} ${body.content}`) };
    };
    return { domain, context, actor, upload, found, set };
  };

  test('includes required modules, with values that any assignment replaces', async () => {
    const { domain, context, actor, upload, set } = await open();
    await upload('base');
    await upload('nginx', requiring('base'));
    await upload('site', 'requires: [{ module: nginx, with: { text: by site } }, { module: base }]');
    const { id } = await newAgent(domain, actor, 'web-1');
    const agent = await getAgent(context, id);
    expect(await set(agent, ['site'])).toMatchObject({
      modules: ['base', 'nginx', 'site'],
      texts: ['/base none', '/nginx by site', '/site none'],
    });
    const parameters = { nginx: { text: 'assigned' } };
    await createAssignment(context, actor, {
      name: 'a',
      modules: ['nginx'],
      selector: 'attr.platform=linux',
      parameters,
    });
    expect((await set(agent, ['site'])).texts).toEqual(['/base none', '/nginx assigned', '/site none']);
    const ordered = await orderModules(context, { modules: ['site'], attributes: { platform: 'linux' } });
    expect(ordered.modules).toEqual(['base', 'nginx', 'site']);
    expect((await orderModules(context, { modules: ['nginx'] })).modules).toEqual(['base', 'nginx']);
  });

  test('keeps required modules while an assignment only audits', async () => {
    const { domain, context, actor, upload, set } = await open();
    await upload('base');
    await upload('site', requiring('base'));
    const { id } = await newAgent(domain, actor, 'web-1');
    const agent = await getAgent(context, id);
    await createAssignment(context, actor, {
      name: 'a',
      modules: ['site'],
      selector: 'attr.platform=linux',
      mode: 'audit',
    });
    expect(await set(agent)).toMatchObject({ modules: [], keep: ['base', 'site'] });
    await updateAssignment(context, actor, 'a', { mode: 'enforce' });
    expect(await set(agent)).toMatchObject({ modules: ['base', 'site'], keep: [] });
  });

  test('refuses to require a module that is missing, does not accept a value, or requires the uploaded module', async () => {
    const { upload, found } = await open();
    expect(await found(upload('site', requiring('base')))).toBe(
      'module_invalid 4 /requires/0/module there is no module "base": upload it first',
    );
    await upload('base');
    await upload('nginx', requiring('base'));
    await upload('site', requiring('nginx'));
    expect(await found(upload('base', requiring('site')))).toBe(
      'module_invalid 4 /requires modules require each other: base -> site -> nginx -> base',
    );
    expect(await found(upload('site', 'requires: [{ module: base, with: { txt: a } }]'))).toBe(
      'module_invalid 4 /requires/0/with/txt module "base": the module has no parameter "txt": did you mean "text"?',
    );
    expect(await found(upload('site', 'requires: [{ module: base, with: { text: 1 } }]'))).toMatch(
      /^module_invalid 4 \/requires\/0\/with\/text module "base": parameter text: must be text/,
    );
  });

  test('refuses to remove a required module, and lists the modules that require it', async () => {
    const { context, actor, upload, found } = await open();
    await upload('base');
    await upload('site', requiring('base'));
    await upload('blog', requiring('base'));
    expect(await getModule(context, 'base')).toMatchObject({ requires: [], required_by: ['blog', 'site'] });
    expect(await found(removeModule(context, actor, 'base'))).toBe(
      'module_in_use the module is required by modules: blog, site',
    );
    await upload('blog');
    expect(await getModule(context, 'blog', 1)).toMatchObject({ requires: ['base'] });
    expect(await getModule(context, 'blog')).toMatchObject({ requires: [] });
    await removeModule(context, actor, 'site');
    expect(await found(removeModule(context, actor, 'base'))).toBe('done');
  });

  test('accepts only one of two conflicting concurrent changes: requiring and removing a module, or requiring each other', async () => {
    const { context, actor, upload, found } = await open();
    for (let round = 0; round < 5; round++) {
      await upload('base');
      const [uploaded, removed] = await Promise.all([
        found(upload('site', requiring('base'))),
        found(removeModule(context, actor, 'base')),
      ]);
      expect([uploaded === 'done', removed === 'done']).toContain(true);
      expect(uploaded === 'done' && removed === 'done').toBe(false);
      if (uploaded === 'done') await removeModule(context, actor, 'site');
      const names = [`a${round}`, `b${round}`] as const;
      for (const name of names) await upload(name);
      const both = await Promise.all([
        found(upload(names[0], requiring(names[1]))),
        found(upload(names[1], requiring(names[0]))),
      ]);
      expect(both.filter((one) => one === 'done')).toHaveLength(1);
    }
  });
});
