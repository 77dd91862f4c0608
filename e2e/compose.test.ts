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
import { composeFile, loop, podmanComposeUp } from './hosts/subjects/containers/compose.ts';
import {
  containersList,
  registry,
  registryPassword,
  registryUp,
  registryUser,
} from './hosts/subjects/containers/container.ts';
import { containersRoot } from './hosts/subjects/containers/root.ts';
import { type Declared, resolved } from './hosts/subjects/subject.ts';
import { noHosts } from './hosts/test.ts';
import { TestHosts } from './hosts/test-hosts.ts';
import { someTests } from './some-tests.ts';

const reason = noHosts();

/** Returns the projects that docs/modules.md declares. */
const documented = (): Declared[] =>
  blocksOf(readFileSync(join(root, 'docs/modules.md'), 'utf8'))
    .filter(({ language, source }) => language === 'yaml' && /^ +compose:$/m.test(source))
    .flatMap(({ source }) => (parse(source) as { resources: { resource: Declared }[] }).resources)
    .flatMap(({ resource }) => (Object.hasOwn(resource, 'compose') ? [resource] : []));

/** Shell text that removes what a test leaves, so that a failed test does not make the next ones fail. */
const cleanUp = `rm -f /usr/local/bin/podman /usr/local/bin/docker-compose
if [ -e /usr/bin/kept ]; then mv /usr/bin/kept /usr/bin/docker-compose; fi
if [ -e /usr/bin/kept-podman ]; then mv /usr/bin/kept-podman /usr/bin/podman; fi
systemctl start podman.socket
podman rm --all --force --time 0 > /dev/null
podman network prune --force > /dev/null
podman volume prune --force > /dev/null
rm -rf /srv /opt/shop /root/other.yaml /etc/app.conf
mkdir -p /srv/shop/conf
`;

describe.skipIf(reason !== null)(`Compose with Podman${reason === null ? '' : ` (${reason})`}`, () => {
  let hosts: TestHosts;
  let machine: Machine;
  let agent: DrivenAgent;
  beforeAll(async () => {
    hosts = await TestHosts.open({ base: await containersRoot() });
    machine = await hosts.start('compose');
    await machine.sh(podmanComposeUp);
    agent = await DrivenAgent.start(machine);
  }, 600_000);
  afterAll(() => hosts?.end());
  afterEach(async () => {
    await agent.forget();
    await machine.sh(cleanUp);
  });

  const testSome = someTests(test, 3, 'Compose with Podman');
  const web = composeFile({ web: 'image: localhost/app:1' });
  const declare = (fields: Partial<ResourceBodies['compose']>): Declared => ({
    compose: { name: 'shop', path: '/srv/shop/compose.yaml', content: web, ...fields },
  });
  const run = async (kind: 'plan' | 'apply' | 'drift', ...declared: Declared[]) =>
    (await agent.run(operation(kind, declared.map(resolved)))).results;
  const apply = (...declared: Declared[]) => run('apply', ...declared);
  const names = () => machine.sh(containersList);
  const inspect = async (format: string, name: string) =>
    (await machine.exec('podman', 'container', 'inspect', '--format', format, name)).trim();
  const failure = (text: string) => ({ status: 'failed', message: expect.stringContaining(text) });
  const compose = 'DOCKER_HOST=unix:///run/podman/podman.sock docker-compose --project-name shop';
  const objects = () => machine.sh('podman volume ls -q; podman network ls -q | sort');

  testSome('applies and removes the documented examples', async () => {
    const example: Declared = { compose: parse(kinds.compose.example) };
    expect(documented()).toHaveLength(1);
    for (const declared of [example, ...documented()]) {
      const { restart_on: _, ...body } = { restart_on: [], ...declared.compose };
      // Unlike the test images, the images in the examples have a command.
      const content = String(body.content).replace(
        /^( +)image: .*$/gm,
        (_line, indent) => `${indent}image: localhost/app:1\n${indent}command: ${loop}`,
      );
      const local: Declared = { compose: { ...body, content, engine: 'podman' } };
      expect(await apply(local), JSON.stringify(declared)).toMatchObject([{ status: 'changed', message: null }]);
      expect(await apply(local)).toMatchObject([{ status: 'unchanged' }]);
      await apply();
      expect(await names()).toBe('');
    }
  });

  testSome('keeps the containers of unchanged services, and creates the others again', async () => {
    const two = (mode: string) =>
      composeFile({ web: 'image: localhost/app:1', api: `image: localhost/app:1\nenvironment: { MODE: ${mode} }` });
    await apply(declare({ content: two('one') }));
    const [webId, apiId] = [await inspect('{{.Id}}', 'shop_web_1'), await inspect('{{.Id}}', 'shop_api_1')];
    const planned = await run('plan', declare({ content: two('two') }));
    expect(planned).toMatchObject([
      { action: 'update', changes: [{ field: 'content' }, { field: 'configuration', from: 'api' }] },
    ]);
    await apply(declare({ content: two('two') }));
    expect(await inspect('{{.Id}}', 'shop_web_1')).toBe(webId);
    expect(await inspect('{{.Id}}', 'shop_api_1')).not.toBe(apiId);
    const commented = await apply(declare({ content: `${two('two')}# the end\n` }));
    expect(commented).toMatchObject([{ changes: [{ field: 'content' }] }]);
    expect(await inspect('{{.Id}}', 'shop_web_1')).toBe(webId);
    await apply(declare({}));
    expect(await names()).toBe('shop_web_1 running\n');
  });

  testSome('reports a stopped, replaced, or additional container as drift', async () => {
    await apply(declare({}));
    await machine.sh('podman stop shop_web_1 > /dev/null');
    expect(await run('drift')).toMatchObject([
      { changes: [{ field: 'services', from: 'web: exited', to: 'running' }] },
    ]);
    await apply(declare({}));
    await machine.sh(`sed -i 's/app:1/app:2/' /srv/shop/compose.yaml
${compose} --file /srv/shop/compose.yaml up --detach --scale web=2 2> /dev/null`);
    expect(await run('drift')).toMatchObject([
      {
        changes: [
          { field: 'content' },
          { field: 'configuration', from: 'web' },
          { field: 'services', from: 'web: 2 of 1' },
        ],
      },
    ]);
    expect(await apply(declare({}))).toMatchObject([{ status: 'changed' }]);
    expect(await machine.exec('podman', 'exec', 'shop_web_1', '/bin/cat', '/version')).toBe('one\n');
    expect(await names()).toBe('shop_web_1 running\n');
  });

  testSome('follows a tag that names another image on the machine', async () => {
    await machine.sh('podman tag localhost/app:1 localhost/moving:1');
    const content = composeFile({ web: 'image: localhost/moving:1' });
    await apply(declare({ content }));
    await machine.sh('podman tag localhost/app:2 localhost/moving:1');
    expect(await run('drift')).toHaveLength(1);
    await apply(declare({ content }));
    expect(await machine.exec('podman', 'exec', 'shop_web_1', '/bin/cat', '/version')).toBe('two\n');
    expect(await run('drift')).toEqual([]);
  });

  testSome('reports services that fail, a job that fails, and a file that Compose refuses', async () => {
    const exits = (code: number) =>
      `services: { web: { image: "localhost/app:1", command: ["/bin/sh", "-c", "exit ${code}"] } }\n`;
    expect(await apply(declare({ content: exits(3) }))).toMatchObject([
      failure('web exited with 3; see `podman logs '),
    ]);
    expect(await apply(declare({ content: exits(0) }))).toMatchObject([failure('web exited with 0')]);
    expect(await apply(declare({ content: exits(3), jobs: ['web'] }))).toMatchObject([failure('web exited with 3')]);
    const job = declare({ content: exits(0), jobs: ['web'] });
    expect(await apply(job)).toMatchObject([{ status: 'changed' }]);
    expect(await apply(job)).toMatchObject([{ status: 'unchanged' }]);
    expect(await run('drift')).toEqual([]);
    const refused = declare({ content: 'services: { web: { image: "localhost/app:1", nonsense: 1 } }\n' });
    for (const kind of ['plan', 'apply'] as const)
      expect(await run(kind, refused)).toMatchObject([failure('nonsense')]);
    expect(await run('plan', declare({ content: web.replace('app:1', 'none:1'), pull: 'never' }))).toMatchObject([
      failure('there is no image localhost/none:1'),
    ]);
    await apply();
    expect(await names()).toBe('');
  });

  testSome('waits for a health check, and fails if it fails', async () => {
    const checked = (test: string) =>
      composeFile({ web: `image: localhost/app:1\nhealthcheck: { test: "${test}", interval: 1s, retries: 2 }` });
    expect(await apply(declare({ content: checked('test -f /version') }))).toMatchObject([{ status: 'changed' }]);
    expect(await inspect('{{.State.Health.Status}}', 'shop_web_1')).toBe('healthy');
    expect(await apply(declare({ content: checked('test -f /nothing'), wait: 5 }))).toMatchObject([
      failure('the project shop is not ready after 5 s: web is '),
    ]);
  });

  testSome('refuses a project that Muster did not start', async () => {
    await machine.sh(`mkdir -p /opt/shop; cat > /opt/shop/compose.yaml <<'END'
${composeFile({ web: 'image: localhost/app:2' })}END
${compose} --file /opt/shop/compose.yaml up --detach 2> /dev/null`);
    const id = await inspect('{{.Id}}', 'shop_web_1');
    for (const force of [false, true])
      for (const kind of ['plan', 'apply'] as const)
        expect(await run(kind, declare({ force }))).toMatchObject([failure('run from /opt/shop/compose.yaml')]);
    expect(await apply({ compose: { name: 'shop', path: '/srv/shop/compose.yaml', ensure: 'absent' } })).toMatchObject([
      failure('run from /opt/shop'),
    ]);
    expect(await apply(declare({ path: '/opt/shop/compose.yaml' }))).toMatchObject([
      failure('`force: true` takes it over'),
    ]);
    expect(await inspect('{{.Id}}', 'shop_web_1')).toBe(id);
    expect(await apply(declare({ path: '/opt/shop/compose.yaml', force: true }))).toMatchObject([
      { status: 'changed' },
    ]);
    await apply();
    expect(await machine.exec('podman', 'exec', 'shop_web_1', '/bin/cat', '/version')).toBe('two\n');
  });

  testSome('does not claim a project that others start after a failed apply, or after its own', async () => {
    const unknown = declare({ content: composeFile({ web: 'image: localhost:1/none:1' }) });
    expect(await apply(unknown)).toMatchObject([failure('cannot pull localhost:1/none:1')]);
    await machine.sh(`cat > /srv/shop/compose.yaml <<'END'
${composeFile({ web: 'image: localhost/app:2' })}END
${compose} --file /srv/shop/compose.yaml up --detach 2> /dev/null`);
    const id = await inspect('{{.Id}}', 'shop_web_1');
    expect(await apply(declare({}))).toMatchObject([failure('Muster did not start the project shop')]);
    // The failed apply changed nothing, so there is nothing to remove.
    expect(await apply()).toEqual([]);
    expect(await inspect('{{.Id}}', 'shop_web_1')).toBe(id);
    await machine.sh(`${compose} --file /srv/shop/compose.yaml down 2> /dev/null`);
    expect(await machine.sh('cat /srv/shop/compose.yaml; rm /srv/shop/compose.yaml')).toContain('app:2');

    await apply(declare({}));
    await machine.sh(`sed 's/app:1/app:2/' /srv/shop/compose.yaml > /root/other.yaml
${compose} --project-directory /srv/shop --file /root/other.yaml up --detach 2> /dev/null`);
    const other = await inspect('{{.Id}}', 'shop_web_1');
    expect(await run('drift')).toMatchObject([{ changes: [{ field: 'configuration' }] }]);
    for (const declared of [[declare({})], []])
      expect(await apply(...declared)).toMatchObject([failure('run from /root/other.yaml')]);
    expect(await inspect('{{.Id}}', 'shop_web_1')).toBe(other);
    await machine.sh('podman rm -f shop_web_1 > /dev/null; rm /root/other.yaml');
    await apply();
    expect(await names()).toBe('');
  });

  testSome('neither changes nor removes a file that it did not write, even after a change of path', async () => {
    await machine.sh('mkdir -p /srv/other; echo "# by Ada" | tee /srv/shop/compose.yaml > /srv/other/compose.yaml');
    const files = () => machine.sh('cat /srv/shop/compose.yaml /srv/other/compose.yaml');
    const gone: Declared = { compose: { name: 'shop', path: '/srv/shop/compose.yaml', ensure: 'absent' } };
    for (const declared of [declare({}), gone])
      expect(await apply(declared)).toMatchObject([failure('Muster did not write /srv/shop/compose.yaml')]);
    expect(await files()).toBe('# by Ada\n# by Ada\n');
    await machine.sh('rm /srv/shop/compose.yaml');
    await apply(declare({}));
    for (const force of [false, true])
      expect(await apply(declare({ path: '/srv/other/compose.yaml', force }))).toMatchObject([
        failure('Muster made the project shop from /srv/shop/compose.yaml'),
      ]);
    expect(await apply()).toMatchObject([{ action: 'remove', status: 'changed' }]);
    expect(await machine.sh('ls /srv/shop; cat /srv/other/compose.yaml')).toBe('conf\n# by Ada\n');
  });

  test('runs Compose only in a directory that only root can change, and shows nothing of a .env file', async () => {
    await machine.sh(`mkdir -p /srv/open; chown nobody /srv/open; mkdir -p -m 1777 /srv/sticky; for directory in open sticky; do
  printf 'A=correct-horse\n' > /srv/$directory/.env; done
printf '#!/bin/sh\ntouch /run/compose-ran\nexec /usr/bin/docker-compose "$@"\n' > /usr/local/bin/docker-compose
chmod 755 /usr/local/bin/docker-compose`);
    for (const path of ['/srv/open/compose.yaml', '/srv/sticky/compose.yaml', '/srv/sticky/later/compose.yaml'])
      for (const kind of ['plan', 'apply'] as const)
        expect(await run(kind, declare({ path }))).toMatchObject([
          failure('users other than root can change the names'),
        ]);
    expect(await machine.sh('ls /run/compose-ran || echo none; rm /usr/local/bin/docker-compose')).toBe('none\n');
    await machine.sh('rm -r /srv/open /srv/sticky; echo TOKEN=correct-horse > /srv/shop/.env');
    const wrong = declare({ content: web.replace('command:', 'scale: "${TOKEN}"\n    command:') });
    const refused = await apply(wrong);
    expect(refused).toMatchObject([failure('/srv/shop/.env may contain secrets')]);
    expect(JSON.stringify(refused)).not.toContain('horse');
    // Compose cannot decode the byte.
    await machine.sh('rm /srv/shop/.env; printf "TOKEN=correct-horse\\nA=\\377\\n" > /srv/shop/a.env');
    const named = declare({ content: composeFile({ web: 'image: localhost/app:1\nenv_file: a.env' }) });
    const misread = await apply(named);
    expect(misread).toMatchObject([failure('an env_file may contain secrets')]);
    expect(JSON.stringify(misread)).not.toContain('horse');
    await machine.sh('rm /srv/shop/a.env');
    await apply(declare({}));
    await machine.sh('chmod 1777 /srv/shop');
    expect(await apply()).toMatchObject([failure('users other than root can change the names')]);
    expect(await names()).toBe('shop_web_1 running\n');
    await machine.sh('chmod 755 /srv/shop');
    await apply();
    expect(await names()).toBe('');
  });

  testSome('restarts the services after a change of a file that they use', async () => {
    const content = composeFile({ web: 'image: localhost/app:1\nvolumes: ["/etc/app.conf:/app.conf:ro"]' });
    const resources = (text: string) => [
      { ...resolved({ 'file-unix': { path: '/etc/app.conf', content: text } }), id: 'config' },
      { ...resolved(declare({ content })), id: 'shop', restart_on: ['path:/etc/app.conf'] },
    ];
    await agent.run(operation('apply', resources('one')));
    const [id, pid] = [await inspect('{{.Id}}', 'shop_web_1'), await inspect('{{.State.Pid}}', 'shop_web_1')];
    const { results } = await agent.run(operation('apply', resources('two')));
    expect(results.map(({ action }) => action)).toEqual(['update', 'restart']);
    expect(await inspect('{{.Id}}', 'shop_web_1')).toBe(id);
    expect(await inspect('{{.State.Pid}}', 'shop_web_1')).not.toBe(pid);
  });

  testSome('starts with the variables of files that the same apply creates or changes', async () => {
    const content = composeFile({
      web: 'image: localhost/app:1\nenv_file: a.env\nenvironment: { MODE: "${MODE}" }',
    });
    const dotenv = '/srv/shop/.env';
    const resources = (mode: string, extra: string) => [
      resolved({ 'file-unix': { path: dotenv, content: `MODE=${mode}\n` } }),
      resolved({ 'file-unix': { path: '/srv/shop/a.env', content: `EXTRA=${extra}\n` } }),
      { ...resolved(declare({ content })), restart_on: [`path:${dotenv}`] },
    ];
    const actions = async (kind: 'plan' | 'apply', mode: string, extra: string) =>
      (await agent.run(operation(kind, resources(mode, extra)))).results.map(({ action }) => action);
    const variables = async () => (await machine.exec('podman', 'exec', 'shop_web_1', '/bin/env')).split('\n');
    for (const kind of ['plan', 'apply'] as const)
      expect(await actions(kind, 'one', 'one')).toEqual(['create', 'create', 'create']);
    expect(await variables()).toEqual(expect.arrayContaining(['EXTRA=one', 'MODE=one']));
    for (const kind of ['plan', 'apply'] as const)
      expect(await actions(kind, 'one', 'two')).toEqual(['none', 'update', 'update']);
    expect(await variables()).toContain('EXTRA=two');
    for (const kind of ['plan', 'apply'] as const)
      expect(await actions(kind, 'two', 'two')).toEqual(['update', 'none', 'restart']);
    expect(await variables()).toContain('MODE=two');
    expect(await run('drift')).toEqual([]);
    expect(await actions('apply', 'two', 'two')).toEqual(['none', 'none', 'none']);
  });

  testSome('refuses a file of another resource, and keeps a file that another resource takes over', async () => {
    const whole: Declared = { 'file-unix': { path: '/srv/shop/compose.yaml', content: web } };
    await apply(whole);
    expect(await apply(declare({}))).toMatchObject([
      failure('/srv/shop/compose.yaml is managed as file-unix /srv/shop/compose.yaml here'),
      { action: 'remove', status: 'changed' },
    ]);
    await apply(declare({}));
    expect(await apply(whole)).toMatchObject([{ status: 'unchanged' }, { action: 'remove', status: 'changed' }]);
    expect(await names()).toBe('');
    expect(await machine.sh('cat /srv/shop/compose.yaml')).toBe(web);
  });

  testSome(
    'removes services that share a network, and no container of an image with labels of the project',
    async () => {
      const content = composeFile({
        app: 'image: localhost/app:1',
        side: 'image: localhost/app:1\nnetwork_mode: "service:app"\ndepends_on: [app]',
      });
      expect(await apply(declare({ content }))).toMatchObject([{ status: 'changed' }]);
      await machine.sh(`podman commit -q shop_app_1 localhost/committed:1 > /dev/null
podman run -d --name other localhost/committed:1 /bin/sh -c 'while :; do sleep 1; done' > /dev/null`);
      expect(await run('drift')).toEqual([]);
      await apply();
      expect(await names()).toBe('other running\n');
    },
  );

  testSome('removes volumes and images only if declared, and only those that did not exist before', async () => {
    const content = composeFile({ web: 'image: localhost/app:1\nvolumes: ["data:/data"]' }, 'volumes: { data: {} }\n');
    await apply(declare({ content }));
    await apply();
    expect(await machine.sh('podman volume ls -q')).toBe('shop_data\n');
    await apply(declare({ content, remove_volumes: true }));
    await apply();
    expect(await machine.sh('podman volume ls -q')).toBe('shop_data\n');
    await machine.sh('podman volume rm shop_data > /dev/null');
    await apply(declare({ content, remove_volumes: true }));
    await apply();
    expect(await machine.sh('podman volume ls -q; podman image exists localhost/app:1 && echo there')).toBe('there\n');
  });

  testSome('keeps networks and volumes of the project that existed before', async () => {
    const label = '--label com.docker.compose.project=shop';
    await machine.sh(`podman network create ${label} shop_old; podman volume create ${label} shop_old`);
    const before = await objects();
    const gone: Declared = { compose: { name: 'shop', path: '/srv/shop/compose.yaml', ensure: 'absent' } };
    expect(await apply(gone)).toMatchObject([{ status: 'unchanged' }]);
    await apply(declare({ remove_volumes: true }));
    expect(await apply(gone)).toMatchObject([{ status: 'changed' }]);
    expect(await objects()).toBe(before);
    await apply(declare({ remove_volumes: true }));
    await apply();
    expect(await objects()).toBe(before);
  });

  test('pulls with a password, and shows neither it nor variables in arguments, reports, and files', async () => {
    const image = `${registry}/shop/app:1`;
    await machine.sh(`${registryUp}
podman login --username '${registryUser}' --password '${registryPassword}' ${registry} > /dev/null 2>&1
podman tag localhost/app:1 ${image}
podman push -q ${image} > /dev/null
podman rmi ${image} > /dev/null; podman logout --all > /dev/null
for program in podman docker-compose; do
  printf '#!/bin/sh\\ntr "\\\\0" " " < /proc/$$/cmdline >> /run/started\\nexec /usr/bin/%s "$@"\\n' $program > /usr/local/bin/$program
  chmod 755 /usr/local/bin/$program
done`);
    const content = composeFile({ web: `image: ${image}\nenvironment: { TOKEN: "\${TOKEN}" }` });
    const login = { registry, registry_user: registryUser, registry_password: registryPassword };
    const body = { content, ...login, environment: { TOKEN: 'correct-horse' }, remove_images: true };
    const applied = await apply(declare(body));
    expect(applied).toMatchObject([{ status: 'changed', message: null }]);
    expect(await machine.exec('/usr/bin/podman', 'exec', 'shop_web_1', '/bin/env')).toContain('TOKEN=correct-horse\n');
    const rotated = await apply(declare({ ...body, environment: { TOKEN: 'other-horse' } }));
    expect(rotated).toMatchObject([{ changes: [{ field: 'configuration', from: 'web' }] }]);
    const wrong = content.replace('command:', 'scale: "${TOKEN}"\n    command:');
    const refused = await apply(declare({ ...body, content: wrong }));
    expect(refused).toMatchObject([{ status: 'failed' }]);
    const started = await machine.sh('cat /run/started; cat /srv/shop/compose.yaml');
    expect(started).toContain('pull');
    expect(started).toContain('up --no-build');
    for (const text of [JSON.stringify([applied, rotated, refused]), started])
      expect(text).not.toMatch(/horse|battery|staple/);
    await apply();
    expect(await machine.sh(`podman image exists ${image} || echo gone`)).toBe('gone\n');
  });

  test('changes nothing if it cannot start the services of a project again that it took over', async () => {
    const path = '/srv/shop/compose.yaml';
    await machine.sh(`podman tag localhost/app:2 localhost:1/old:1
cat > ${path} <<'END'
${composeFile({ web: 'image: localhost:1/old:1' })}END
${compose} --file ${path} up --detach 2> /dev/null`);
    expect(await apply(declare({ force: true }))).toMatchObject([{ status: 'changed' }]);
    const state = async () => [
      await inspect('{{.Id}} {{.State.Status}}', 'shop_web_1'),
      await machine.sh(`cat ${path}`),
    ];
    const taken = await state();
    await machine.sh('podman untag localhost/app:2 localhost:1/old:1; mv /usr/bin/docker-compose /usr/bin/kept');
    expect(await apply()).toMatchObject([failure('docker-compose is not installed')]);
    expect(await state()).toEqual(taken);
    await machine.sh('mv /usr/bin/kept /usr/bin/docker-compose');
    expect(await apply()).toMatchObject([failure('cannot pull localhost:1/old:1')]);
    expect(await state()).toEqual(taken);
    await machine.sh('podman tag localhost/app:2 localhost:1/old:1');
    expect(await apply()).toMatchObject([{ action: 'remove', status: 'changed' }]);
    expect(await machine.exec('podman', 'exec', 'shop_web_1', '/bin/cat', '/version')).toBe('two\n');
    await machine.sh(
      'podman rm --force --time 0 shop_web_1 > /dev/null; podman untag localhost/app:2 localhost:1/old:1',
    );
  });

  test('reports why Compose failed if the engine fails right afterwards', async () => {
    await machine.sh(`cat > /usr/local/bin/docker-compose <<'END'
#!/bin/sh
case " $* " in *' up '*)
  printf '#!/bin/sh\necho "Error: the second error" >&2; exit 125\n' > /usr/local/bin/podman
  chmod 755 /usr/local/bin/podman
  echo 'Error: the first error' >&2
  exit 1;;
esac
exec /usr/bin/docker-compose "$@"
END
chmod 755 /usr/local/bin/docker-compose`);
    expect(await apply(declare({}))).toMatchObject([failure('the first error')]);
    await machine.sh('rm /usr/local/bin/podman /usr/local/bin/docker-compose');
    expect(await apply(declare({}))).toMatchObject([{ status: 'changed' }]);
  });

  testSome('takes over the stopped project of a file that another resource had', async () => {
    const path = '/srv/shop/docker-compose.yml';
    const former: Declared = { 'file-unix': { path, content: web.replace('app:1', 'app:2') } };
    await apply(former);
    await machine.sh(`${compose} --file ${path} up --detach 2> /dev/null; podman stop shop_web_1 > /dev/null`);
    const later = declare({ path, force: true });
    expect(await apply(later)).toMatchObject([
      failure(`${path} is managed as file-unix ${path} here`),
      { action: 'remove', status: 'changed' },
    ]);
    expect(await apply(declare({ path }))).toMatchObject([failure('`force: true` takes it over')]);
    expect(await apply(later)).toMatchObject([{ status: 'changed' }]);
    expect(await names()).toBe('shop_web_1 running\n');
  });

  testSome('names the missing program, or the missing service of Podman', async () => {
    await machine.sh('systemctl stop podman.socket podman.service; rm -f /run/podman/podman.sock');
    expect(await run('plan', declare({}))).toMatchObject([failure('podman.socket is not active')]);
    await machine.sh('systemctl start podman.socket; mv /usr/bin/docker-compose /usr/bin/kept');
    expect(await run('plan', declare({}))).toMatchObject([failure('docker-compose is not installed')]);
    await machine.sh('mv /usr/bin/podman /usr/bin/kept-podman');
    expect(await run('plan', declare({}))).toMatchObject([failure('podman is not installed')]);
    await machine.sh('echo "# by Ada" > /srv/shop/compose.yaml');
    const gone: Declared = { compose: { name: 'shop', path: '/srv/shop/compose.yaml', ensure: 'absent', force: true } };
    expect(await apply(gone)).toMatchObject([{ action: 'remove', status: 'changed' }]);
    expect(await machine.sh('ls /srv/shop')).toBe('conf\n');
  });
});
