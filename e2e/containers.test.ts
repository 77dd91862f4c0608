import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { kinds, type ResourceBodies } from '@muster/protocol/module';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { operation } from '../agent/src/converge/test/desired.ts';
import { blocksOf } from '../tools/docs/markdown.ts';
import { root } from '../tools/suite/cli.ts';
import { DrivenAgent } from './hosts/driven-agent.ts';
import type { Machine } from './hosts/machine.ts';
import {
  containersList,
  containersUp,
  registry,
  registryPassword,
  registryUp,
  registryUser,
  runs,
} from './hosts/subjects/containers/container.ts';
import { containersRoot } from './hosts/subjects/containers/root.ts';
import { type Declared, resolved } from './hosts/subjects/subject.ts';
import { noHosts } from './hosts/test.ts';
import { TestHosts } from './hosts/test-hosts.ts';
import { someTests } from './some-tests.ts';

const reason = noHosts();

/** Returns the containers that docs/modules.md declares. */
const documented = (): Declared[] =>
  blocksOf(readFileSync(join(root, 'docs/modules.md'), 'utf8'))
    .filter(({ language, source }) => language === 'yaml' && /^ +container:$/m.test(source))
    .flatMap(({ source }) => (parse(source) as { resources: { resource: Declared }[] }).resources)
    .flatMap(({ resource }) => (Object.hasOwn(resource, 'container') ? [resource] : []));

describe.skipIf(reason !== null)(`containers of Podman${reason === null ? '' : ` (${reason})`}`, () => {
  let hosts: TestHosts;
  let machine: Machine;
  let agent: DrivenAgent;
  beforeAll(async () => {
    hosts = await TestHosts.open({ base: await containersRoot() });
    machine = await hosts.start('containers');
    await machine.sh(containersUp);
    agent = await DrivenAgent.start(machine);
  }, 600_000);
  afterAll(() => hosts?.end());

  const testSome = someTests(test, 3, 'containers of Podman');
  const declare = (fields: Partial<ResourceBodies['container']>): Declared => ({
    container: { name: 'web', image: 'localhost/app:1', command: runs, ...fields },
  });
  const run = async (kind: 'plan' | 'apply' | 'drift', ...declared: Declared[]) =>
    (await agent.run(operation(kind, declared.map(resolved)))).results;
  const apply = (...declared: Declared[]) => run('apply', ...declared);
  const inspect = async (format: string, name = 'web') =>
    (await machine.exec('podman', 'container', 'inspect', '--format', format, name)).trim();
  const names = () => machine.sh(containersList);

  testSome('applies and removes the documented examples', async () => {
    await machine.sh(`podman tag localhost/app:1 docker.io/library/nginx:1.27.4
podman tag localhost/app:1 docker.io/library/notes:1.4
mkdir -p /srv/www; echo title > /etc/notes.conf`);
    const example: Declared = { container: parse(kinds.container.example) };
    expect(documented()).toHaveLength(1);
    for (const declared of [example, ...documented()]) {
      // Unlike the test images, the images in the examples have a command. `restart_on` is removed, because this test
      // has only one resource.
      const { restart_on: _, ...body } = { restart_on: [], ...declared.container };
      const local: Declared = { container: { ...body, command: runs } };
      expect(await apply(local), JSON.stringify(declared)).toMatchObject([{ status: 'changed', message: null }]);
      expect(await apply(local)).toMatchObject([{ status: 'unchanged' }]);
      await apply();
      expect(await names()).toBe('');
    }
    await machine.sh('podman volume rm notes > /dev/null');
  });

  testSome('keeps the process of an unchanged container, and replaces it for each changed field', async () => {
    await apply(declare({ environment: { A: '1' }, ports: ['127.0.0.1:8081:80', '127.0.0.1:8082:81'] }));
    const [id, pid] = [await inspect('{{.Id}}'), await inspect('{{.State.Pid}}')];
    await apply(declare({ environment: { A: '1' }, ports: ['127.0.0.1:8082:81', '127.0.0.1:8081:80'] }));
    expect([await inspect('{{.Id}}'), await inspect('{{.State.Pid}}')]).toEqual([id, pid]);
    const changed = await apply(declare({ environment: { A: '2' }, ports: ['127.0.0.1:8081:80'] }));
    expect(changed).toMatchObject([{ changes: [{ field: 'ports' }, { field: 'environment', from: null, to: null }] }]);
    expect(await inspect('{{.Id}}')).not.toBe(id);
    expect(await machine.exec('podman', 'exec', 'web', '/bin/env')).toContain('A=2\n');
    await apply();
  });

  testSome('follows a tag that was moved to another local image', async () => {
    await machine.sh('podman tag localhost/app:1 localhost/moving:1');
    await apply(declare({ image: 'localhost/moving:1' }));
    expect(await machine.exec('podman', 'exec', 'web', '/bin/cat', '/version')).toBe('one\n');
    await machine.sh('podman tag localhost/app:2 localhost/moving:1');
    expect(await run('drift')).toMatchObject([{ changes: [{ field: 'image' }] }]);
    await apply(declare({ image: 'localhost/moving:1' }));
    expect(await machine.exec('podman', 'exec', 'web', '/bin/cat', '/version')).toBe('two\n');
    await apply();
  });

  testSome('keeps the old container if the new one cannot be created, does not start, or exits', async () => {
    await apply(declare({}));
    const id = await inspect('{{.Id}}');
    await machine.sh(
      `podman run --detach --name other --publish 127.0.0.1:8090:80 localhost/app:1 /bin/sh -c '${runs[2]}' > /dev/null`,
    );
    for (const [fields, message] of [
      [{ volumes: ['/nowhere:/data'] }, /cannot (create|start) the container web: .*\/nowhere/],
      [{ command: ['/bin/nothing'] }, /cannot start the container web: /],
      [{ command: ['/bin/sh', '-c', 'exit 3'] }, /it exited immediately with 3; see `podman logs web`/],
      [
        { command: ['/bin/sh', '-c', 'sleep 0.1'], restart: 'always' },
        /it exited immediately (and is restarted repeatedly|with 0)/,
      ],
      [{ ports: ['127.0.0.1:8090:80'] }, /cannot start the container web: .*8090/],
    ] satisfies [Partial<ResourceBodies['container']>, RegExp][]) {
      const failed = await apply(declare(fields));
      expect(failed, JSON.stringify(fields)).toMatchObject([
        { status: 'failed', message: expect.stringMatching(message) },
      ]);
      expect(await names()).toBe('other running\nweb running\n');
      expect(await inspect('{{.Id}}')).toBe(id);
    }
    await machine.sh('podman rm -f other > /dev/null');
    await apply();
    expect(await names()).toBe('');
  });

  testSome('creates the container even if a killed Podman process left its storage behind', async () => {
    // Podman creates the storage of a container before the container itself. A Podman process that is killed in between
    // leaves only the storage. Restoring the database from before the creation has the same effect.
    const left = await machine.sh(`database=/var/lib/containers/storage/libpod/bolt_state.db
cp $database /tmp/before.db
podman create --name web-muster-new localhost/app:1 /bin/sh > /dev/null
mv /tmp/before.db $database
podman ps --all --external --noheading --format '{{.Names}} {{.Status}}'`);
    expect(left).toBe('web-muster-new Storage\n');
    expect(await apply(declare({}))).toMatchObject([{ status: 'changed', message: null }]);
    await apply();
    expect(await machine.sh('podman ps --all --external --quiet')).toBe('');
  });

  test('leaves containers that the agent did not create, even if it needs their names', async () => {
    await apply(declare({}));
    const id = await inspect('{{.Id}}');
    await machine.sh('podman create -q --name web-muster-new localhost/app:1 /bin/sh > /dev/null');
    const taken = { status: 'failed', message: expect.stringContaining('the agent needs the name web-muster-new') };
    for (const kind of ['plan', 'apply'] as const)
      expect(await run(kind, declare({ user: '0' }))).toMatchObject([taken]);
    expect([await names(), await inspect('{{.Id}}')]).toEqual(['web running\nweb-muster-new created\n', id]);
    await machine.sh('podman rm web-muster-new > /dev/null');
    await apply();
    expect(await names()).toBe('');
  });

  testSome('replaces, only with `force`, a container that the agent did not create, and restores it', async () => {
    await machine.sh(`podman run -q -d --name web --env SECRET=x localhost/app:2 /bin/sh -c '${runs[2]}' > /dev/null`);
    const id = await inspect('{{.Id}}');
    const refused = { status: 'failed', message: expect.stringContaining('`force: true` replaces it') };
    expect(await run('plan', declare({}))).toMatchObject([refused]);
    expect(await apply(declare({}))).toMatchObject([refused]);
    expect(await inspect('{{.Id}}')).toBe(id);
    expect(await apply(declare({ force: true }))).toMatchObject([{ status: 'changed' }]);
    expect(await names()).toBe('web running\nweb-muster-before exited\n');
    await apply(declare({ force: true, user: '0' }));
    expect(await names()).toBe('web running\nweb-muster-before exited\n');
    await apply();
    expect([await names(), await inspect('{{.Id}}')]).toEqual(['web running\n', id]);
    await machine.sh('podman rm -f web > /dev/null');
  });

  testSome('restarts the container after a change of a file that it uses', async () => {
    const resources = (content: string) => [
      { ...resolved({ 'file-unix': { path: '/etc/app.conf', content } }), id: 'config' },
      {
        ...resolved(declare({ volumes: ['/etc/app.conf:/app.conf:ro'] })),
        id: 'web',
        restart_on: ['path:/etc/app.conf'],
      },
    ];
    await agent.run(operation('apply', resources('one')));
    const [id, pid] = [await inspect('{{.Id}}'), await inspect('{{.State.Pid}}')];
    const { results } = await agent.run(operation('apply', resources('two')));
    expect(results.map(({ action }) => action)).toEqual(['update', 'restart']);
    expect(await inspect('{{.Id}}')).toBe(id);
    expect(await inspect('{{.State.Pid}}')).not.toBe(pid);
    await apply();
  });

  testSome('removes volumes and images only if declared, and only those that did not exist before', async () => {
    await machine.sh('podman volume create own > /dev/null');
    const volumes = ['own:/own', 'made:/made'];
    await apply(declare({ volumes }));
    await apply();
    expect(await machine.sh('podman volume ls -q')).toBe('made\nown\n');
    await machine.sh('podman volume rm made');
    await apply(declare({ volumes, remove_volumes: true }));
    await apply();
    expect(await machine.sh('podman volume ls -q')).toBe('own\n');
    expect(await machine.sh('podman image exists localhost/app:1 && echo there')).toBe('there\n');
    await machine.sh('podman volume rm own');
  });

  test('reports hostile output of the engine as a failure of the resource', async () => {
    const program = '/usr/local/bin/podman';
    try {
      for (const [text, message] of [
        ['echo {', 'is not a list in JSON'],
        ['echo "[1]"', 'is not understood'],
        ['echo "[]"; exit 1', 'cannot read the containers of podman'],
        [
          `echo 'Error: default OCI runtime "crun" not found: invalid argument' >&2; exit 125`,
          'cannot read the containers of podman: default OCI runtime',
        ],
        ["printf 'Error: \\033[31mno\\n' >&2; exit 125", 'cannot read the containers of podman: .*no'],
        [
          'yes "$(head -c 1000 /dev/zero | tr "\\\\0" x)" | head -c 40000000',
          'more about its containers than the agent',
        ],
      ] as const) {
        await machine.sh(`cat > ${program} <<'END'\n#!/bin/sh\n${text}\nEND\nchmod 755 ${program}`);
        const results = await apply(declare({}));
        expect(results, text).toMatchObject([{ status: 'failed', message: expect.stringMatching(message) }]);
        expect(JSON.stringify(results).length, text).toBeLessThan(3000);
      }
    } finally {
      await machine.sh(`rm ${program}`);
    }
  });

  describe('with a registry', () => {
    const image = `${registry}/shop/app`;
    const credentials = { registry_user: registryUser, registry_password: registryPassword };
    const push = (from: string, tag: string) =>
      machine.sh(`podman push -q --creds '${registryUser}:${registryPassword}' ${from} ${image}:${tag} > /dev/null`);
    beforeAll(async () => {
      await machine.sh(registryUp);
      await push('localhost/app:1', '1');
      await push('localhost/app:2', '2');
      await machine.sh(`podman rmi ${image}:1 ${image}:2 > /dev/null 2>&1 || true`);
    });

    test('pulls a missing image with a password that no process exposes, and removes it if declared', async () => {
      await machine.sh(`cat > /usr/local/bin/podman <<'END'
#!/bin/sh
{ tr '\\0' ' ' < /proc/$$/cmdline; echo; env; } >> /run/started
exec /usr/bin/podman "$@"
END
chmod 755 /usr/local/bin/podman`);
      const body = { image: `${image}:1`, environment: { TOKEN: 'correct-horse' }, remove_image: true };
      const results = await apply(declare({ ...body, ...credentials }));
      expect(results).toMatchObject([{ status: 'changed' }]);
      expect(await machine.exec('/usr/bin/podman', 'exec', 'web', '/bin/env')).toContain('TOKEN=correct-horse\n');
      const rotated = await apply(declare({ ...body, ...credentials, environment: { TOKEN: 'battery-staple' } }));
      const refused = await apply(
        declare({ ...body, image: `${image}:3`, ...credentials, environment: { TOKEN: 'x' } }),
      );
      expect(refused).toMatchObject([{ status: 'failed', message: expect.stringContaining(`cannot pull ${image}:3`) }]);
      const denied = await apply(
        declare({ ...body, image: `${image}:2`, registry_user: 'ada', registry_password: 'wr0ng-w0rd' }),
      );
      expect(denied).toMatchObject([
        { status: 'failed', message: expect.stringMatching(/authentication required|unauthorized/) },
      ]);
      const started = await machine.sh('cat /run/started');
      expect(started).toContain('podman pull');
      const shown = [started, await inspect('{{json .Config.Labels}} {{json .Config.CreateCommand}}')];
      for (const text of [JSON.stringify([results, rotated, refused, denied]), ...shown])
        expect(text).not.toMatch(/horse|battery|staple|wr0ng|YWRh/);
      expect(
        await machine.sh('ls -A /root/.docker /run/containers/0/auth.json /dev/shm 2>/dev/null || true'),
      ).not.toMatch(/auth|muster/);
      await apply();
      expect(await machine.sh(`podman image exists ${image}:1 || echo gone`)).toBe('gone\n');
    });

    afterEach(() => machine.sh('rm -f /usr/local/bin/podman'));

    testSome('follows a tag in the registry with `pull: always`, and a digest exactly', async () => {
      await push('localhost/app:1', 'moving');
      await machine.sh(`podman rmi ${image}:moving > /dev/null 2>&1 || true`);
      const body = { image: `${image}:moving`, pull: 'always' as const, ...credentials };
      expect(await apply(declare(body))).toMatchObject([{ status: 'changed', message: null }]);
      const version = () => machine.exec('podman', 'exec', 'web', '/bin/cat', '/version');
      expect(await version()).toBe('one\n');
      await machine.sh(`podman tag ${image}:moving localhost/keep:1`);
      await push('localhost/app:2', 'moving');
      await machine.sh(`podman tag localhost/keep:1 ${image}:moving`);
      expect(await run('drift')).toEqual([]);
      expect(await run('plan', declare(body))).toMatchObject([{ changes: [{ field: 'image' }] }]);
      expect(await apply(declare(body))).toMatchObject([{ status: 'changed' }]);
      expect(await version()).toBe('two\n');
      expect(await apply(declare(body))).toMatchObject([{ status: 'unchanged' }]);

      const tags = '/var/lib/docker-registry/docker/registry/v2/repositories/shop/app/_manifests/tags';
      const digest = (await machine.exec('cat', `${tags}/moving/current/link`)).trim();
      expect(await apply(declare({ image: `${image}@${digest}`, ...credentials }))).toMatchObject([
        { status: 'changed' },
      ]);
      expect(await apply(declare({ image: `${image}@${digest}`, ...credentials }))).toMatchObject([
        { status: 'unchanged' },
      ]);
      const wrong = declare({ image: `${image}@sha256:${'0'.repeat(64)}`, ...credentials });
      expect(await apply(wrong)).toMatchObject([
        { status: 'failed', message: expect.stringContaining('manifest unknown') },
      ]);
      expect(await names()).toBe('web running\n');
      await apply();
    });

    testSome('reports a registry that does not respond, and keeps the container', async () => {
      await apply(declare({ image: `${image}:1`, ...credentials }));
      await machine.sh('systemctl stop docker-registry');
      const unreachable = { status: 'failed', message: expect.stringContaining('connection refused') };
      expect(await apply(declare({ image: `${image}:2`, ...credentials }))).toMatchObject([unreachable]);
      expect(await apply(declare({ image: `${image}:1`, pull: 'always', ...credentials }))).toMatchObject([
        unreachable,
      ]);
      expect(await names()).toBe('web running\n');
      expect(await apply(declare({ image: `${image}:1`, ...credentials }))).toMatchObject([{ status: 'unchanged' }]);
      await apply();
    });
  });
});
