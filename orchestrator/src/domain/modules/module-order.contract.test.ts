import { MusterError } from '@muster/protocol';
import { expect, test } from 'vitest';
import { describeAnyDatabase } from '../../../test/databases/databases.ts';
import { newAdmin, newAgent, openDomain } from '../../../test/domain.ts';
import { orderModules } from './module-order.ts';
import { uploadModule } from './modules.ts';

const web = `
name: web
supports: [{ platform: linux }]
resources:
  - id: svc
    resource: { service-systemd: { name: nginx, reload_on: [conf] } }
    depends_on: [pkg]
  - id: pkg
    variants:
      - { when: { distro: debian }, resource: { package-apt: { name: nginx-light } } }
      - { when: { distro: fedora }, resource: { package-dnf: { name: nginx } } }
  - id: conf
    resource: { file-unix: { path: "/etc/\${{ attr.distro }}.conf", content: x } }
`;
const base = 'name: base\nsupports: [{ platform: linux }]\nresources: [{ resource: { file-unix: { path: /b } } }]\n';

describeAnyDatabase('module order', (fixture) => {
  const open = async () => {
    const domain = await openDomain(fixture);
    const { actor } = await newAdmin(domain);
    await uploadModule(domain.context, actor, 'web', web);
    await uploadModule(domain.context, actor, 'base', base);
    await newAgent(domain, actor, 'web-1');
    const order = (request: Parameters<typeof orderModules>[1]) => orderModules(domain.context, request);
    const code = (request: Parameters<typeof orderModules>[1]) =>
      order(request).then(
        () => 'done',
        (error: unknown) => (error instanceof MusterError ? [error.code, error.errors?.[0]?.path] : error),
      );
    return { domain, order, code };
  };
  const edges = (depends_on: number[] = [], reload_on: number[] = []) => ({
    depends_on,
    reload_on,
    restart_on: [],
    rerun_on: [],
  });

  test('orders modules as written when no agent is given', async () => {
    const { order } = await open();
    expect(await order({ modules: ['web', 'base', 'web'] })).toEqual({
      modules: ['web', 'base'],
      resources: [
        { module: 'web', id: 'pkg', type: null, identity: null, ...edges() },
        { module: 'web', id: 'conf', type: 'file-unix', identity: '/etc/${{ attr.distro }}.conf', ...edges() },
        { module: 'web', id: 'svc', type: 'service-systemd', identity: 'nginx', ...edges([0, 1], [1]) },
        { module: 'base', id: null, type: 'file-unix', identity: '/b', ...edges() },
      ],
    });
  });

  test('orders resolved modules for an agent, or for given attributes and tags', async () => {
    const { order } = await open();
    const resolved = {
      modules: ['base', 'web'],
      resources: [
        { module: 'base', id: null, type: 'file-unix', identity: '/b', ...edges() },
        { module: 'web', id: 'pkg', type: 'package-apt', identity: 'nginx-light', ...edges() },
        { module: 'web', id: 'conf', type: 'file-unix', identity: '/etc/debian.conf', ...edges() },
        { module: 'web', id: 'svc', type: 'service-systemd', identity: 'nginx', ...edges([1, 2], [2]) },
      ],
    };
    expect(await order({ modules: ['base', 'web'], agent: 'web-1' })).toEqual(resolved);
    const attributes = { platform: 'linux', distro: 'debian' };
    expect(await order({ modules: ['base', 'web'], attributes })).toEqual(resolved);
  });

  test('reports why modules cannot be ordered', async () => {
    const { code } = await open();
    expect(await code({ modules: ['web', 'none'] })).toEqual(['unknown_module', '/modules/1']);
    expect(await code({ modules: ['web'], agent: 'none' })).toEqual(['agent_not_found', undefined]);
    expect(await code({ modules: ['web'], agent: 'web-1', tags: {} })).toEqual(['invalid_input', '/agent']);
    expect(await code({ modules: ['web'], tags: { '1': 'x' } })).toEqual(['invalid_input', '/tags/1']);
    const attributes = { platform: 'linux', distro: 'arch' };
    expect(await code({ modules: ['web'], attributes })).toEqual([
      'module_unresolved',
      '/modules/web/resources/1/variants',
    ]);
  });
});
