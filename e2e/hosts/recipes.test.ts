import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ApiError } from '@muster/protocol/client';
import {
  applyAgent,
  checkDrift,
  createAssignment,
  createSecret,
  type Operation,
  planAgent,
  removeAssignment,
  updateAssignment,
  uploadModule,
} from '@muster/protocol/http';
import { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, onTestFailed, test } from 'vitest';
import { firstRecipes } from '../../tools/docs/first-recipes.ts';
import { ended } from '../eventually.ts';
import { type Orchestrator, Stage } from '../harness.ts';
import { HostAgent } from './agent.ts';
import { AptRepository } from './apt-repository.ts';
import type { Machine } from './machine.ts';
import { reaches } from './network.ts';
import {
  byHand,
  changedParameters,
  changesSinceFirst,
  changesThen,
  clientsOfDatabase,
  doneByPackage,
  hostile,
  type Parameters,
  parametersOf,
  password,
  recipes,
  recipeText,
  refusals,
  sshKey,
  staysAfterwards,
} from './recipes.ts';
import { recipesRoot } from './recipes-root.ts';
import type { RootDifference } from './root-difference.ts';
import { noHosts } from './test.ts';
import { TestHosts } from './test-hosts.ts';

const reason = noHosts();

const assignment = 'everything';
const key = sshKey();
const ssh = 'ssh -i /run/ada -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR';

/** Returns the actions that change something in an operation or plan, by `module/id`. */
const changesOf = ({ resources }: Operation): Record<string, string> =>
  Object.fromEntries(
    resources
      .filter(({ status }) => status === 'changed' || status === 'would_change')
      .map(({ module, id, action }) => [`${module}/${id}`, action]),
  );

describe.skipIf(reason !== null)(`the recipes${reason === null ? '' : ` (${reason})`}`, () => {
  const stage = new Stage();
  let hosts: TestHosts;
  let machine: Machine;
  let orchestrator: Orchestrator;
  let repository: AptRepository;
  let agent: HostAgent;
  let parameters: Parameters;
  let before: RootDifference;
  let sysctls: string;

  const params = () => ({ node_id: agent.nodeId });
  const plan = (...modules: string[]) => orchestrator.call(planAgent, { params: params(), body: { modules } });
  /**
   * Follows the apply to its end, because a slow machine may need longer than the 300 s for which the request waits.
   */
  const apply = async () => {
    const { operation_id } = await orchestrator.call(applyAgent, { params: params(), body: { modules: [] } });
    return await ended(orchestrator.call, operation_id);
  };
  const drift = () => orchestrator.call(checkDrift, { params: params() });
  const assign = (parameters: Parameters) => {
    const body = { name: assignment, modules: [...recipes], selector: 'role=all', parameters };
    return orchestrator.call(createAssignment, { body });
  };
  const page = async (port: number, path = '/') =>
    await (await fetch(`http://${machine.address}:${port}${path}`)).text();
  const readSysctls = () =>
    machine.sh(
      'cd /proc/sys/net; grep -r . ipv4/conf/*/[ars][cpe][_n]* ipv6/conf/*/accept_redirects ipv4/conf/*/log_martians',
    );

  beforeAll(async () => {
    hosts = await TestHosts.open({ base: await recipesRoot() });
    [machine, orchestrator, repository] = await Promise.all([
      hosts.start('recipes'),
      stage.orchestrator(),
      AptRepository.open(hosts, 'recipes'),
    ]);
    await repository.use(machine);
    // debootstrap does not create this file, but Debian's installer does.
    await machine.sh('echo 127.0.0.1 localhost recipes > /etc/hosts');
    agent = await HostAgent.install(machine, orchestrator, hosts.bridge.address, { tags: { role: 'all' } });
    writeFileSync(join(machine.rootPath, 'run/ada'), key.privateKey, { mode: 0o600 });
    before = machine.changes();
    sysctls = await readSysctls();
    parameters = parametersOf(key.line, `${hosts.bridge.address}/32`);
    for (const name of [...recipes, 'compose-stack'])
      await orchestrator.call(uploadModule, { body: { name, content: recipeText(name) } });
    for (const name of ['postgresql_password', 'stack_token'])
      await orchestrator.call(createSecret, { body: { name, value: password } });
    await assign(parameters);
  });

  afterAll(async () => {
    await repository?.end();
    await hosts?.end();
    await stage.end();
  });

  const report = () => onTestFailed(async () => console.error(stage.report(), await agent.log()));

  test('applying all recipes to one machine succeeds as planned', async () => {
    report();
    const planned = await plan();
    expect(planned).toMatchObject({ status: 'succeeded', error: null });
    const applied = await apply();
    expect(applied).toMatchObject({ status: 'succeeded', error: null });
    const expected = { ...changesOf(planned), ...doneByPackage };
    expect(changesOf(applied)).toEqual(Object.fromEntries(Object.entries(expected).filter(([, action]) => action)));
    expect((await apply()).summary).toMatchObject({ changed: 0, removed: 0, failed: 0, skipped: 0 });
    expect(await drift()).toMatchObject({ status: 'in_sync' });
  });

  test('each applied recipe has the effect that its page describes', async () => {
    report();
    // SSH accepts the key, shows the message of the day, and refuses passwords. An admin can become root.
    const session = await machine.sh(`echo exit | ${ssh} -tt ada@127.0.0.1 2>&1`);
    expect(session).toContain('recipes: debian 12 on x86_64, managed by Muster.');
    expect(await machine.sh(`${ssh} ada@127.0.0.1 sudo -n id -u`)).toBe('0\n');
    expect(await machine.sh('id -nG bob; getent passwd bob | cut -d: -f7')).toBe('bob\n/bin/sh\n');
    expect(await machine.sh('sshd -T | grep -E "^(passwordauthentication|maxauthtries) "')).toBe(
      'maxauthtries 4\npasswordauthentication no\n',
    );

    expect(await page(80)).toContain('<p>Served by recipes.</p>');
    expect(await machine.sh("nginx -T 2> /dev/null | grep -A2 'listen 80'")).toContain('www.example.com example.com;');
    expect(await page(9100, '/metrics')).toContain('node_systemd_unit_state{name="nginx.service",state="active"');

    // The database accepts the role only with its password. The firewall blocks its port.
    const local = `PGPASSWORD="$0" psql -XAtqw -h 127.0.0.1 -U app app -c "$1"`;
    const query = 'SELECT current_user, current_database()';
    expect(await machine.exec('sh', '-euc', local, password, query)).toBe('app|app\n');
    expect((await machine.run(['sh', '-euc', local, 'guessed', query])).code).toBe(2);
    expect(await machine.sh('ls /pwned 2> /dev/null || true')).toBe('');
    expect(await reaches(machine.address, 5432)).toBe(false);
    expect(await reaches(machine.address, 22)).toBe(true);
    expect(await machine.sh('nft list chain inet muster_firewall input')).toContain('policy drop;');

    const upgrades = await machine.sh('apt-config dump; unattended-upgrade --dry-run --debug 2>&1');
    expect(upgrades).toContain('APT::Periodic::Unattended-Upgrade "1";');
    expect(upgrades).toContain('Initial blacklist: linux-');

    // Runs the command in the cron file after creating archives from earlier days.
    await machine.sh(
      'cd /var/backups/muster; for d in 1 2 3 4; do : > 2026-01-0${d}T021500.tar.gz; done; : > mine.tar.gz',
    );
    await machine.sh("sed -n 's/^15 2 \\* \\* \\* root //p' /etc/cron.d/muster-root-backup | sh -eu");
    const backups = (await machine.sh('ls /var/backups/muster')).trim().split('\n');
    expect(backups).toHaveLength(4);
    expect(backups.slice(0, 2)).toEqual(['2026-01-03T021500.tar.gz', '2026-01-04T021500.tar.gz']);
    const packed = await machine.sh(`tar -tzf /var/backups/muster/${backups[2]}`);
    expect(packed.split('\n')).toEqual(expect.arrayContaining(['./etc/passwd', './srv/www/index.html']));
    expect(packed).toContain('ssh_host_ed25519_key\n');
    expect(packed).not.toContain('.pub');

    expect(
      await machine.sh('cat /proc/sys/net/ipv4/conf/{all,default}/accept_redirects'.replace('{all,default}', '*')),
    ).toMatch(/^0\n0\n/);
    expect(await machine.sh('sysctl -n net.ipv4.conf.all.rp_filter net.ipv4.conf.all.log_martians')).toBe('1\n1\n');
    expect(await machine.sh('systemctl --failed --no-legend')).toBe('');
  });

  test('a drift check detects manual changes to all recipes, and an apply repairs them', async () => {
    report();
    for (const { shell } of Object.values(byHand)) await machine.sh(shell);
    const { resources } = await drift();
    const moved: Record<string, Record<string, string[]>> = {};
    for (const { module, id, changes } of resources.filter(({ status }) => status === 'would_change')) {
      moved[module] ??= {};
      moved[module][id ?? ''] = changes.map(({ field }) => field);
    }
    expect(moved).toEqual(Object.fromEntries(Object.entries(byHand).map(([name, { moved }]) => [name, moved])));
    expect(await apply()).toMatchObject({ status: 'succeeded', error: null });
    expect(await drift()).toMatchObject({ status: 'in_sync' });
    expect(await machine.sh(`cat /home/ada/.ssh/authorized_keys; ${ssh} ada@127.0.0.1 sudo -n id -u`)).toBe(
      `ssh-ed25519 AAAA theirs\n${key.line} laptop\n0\n`,
    );
    expect(await page(80)).toContain('Served by recipes.');
  });

  test('applying changed recipe parameters does not interrupt the agent’s connection', async () => {
    report();
    await orchestrator.call(removeAssignment, { params: { name: assignment } });
    await assign(changedParameters(parameters));
    const planned = await plan();
    expect(changesOf(planned)).toEqual(changesThen);
    const applied = await apply();
    expect(applied).toMatchObject({ status: 'succeeded', error: null });
    expect(changesOf(applied)).toEqual(changesThen);
    expect(await page(8080)).toContain('<h1>Moved</h1>');
    expect(await reaches(machine.address, 80)).toBe(false);
    const client = new Client({ host: machine.address, user: 'app', database: 'app', password });
    await client.connect();
    expect((await client.query('SELECT current_user AS who')).rows).toEqual([{ who: 'app' }]);
    await client.query('CREATE TABLE kept (it text)');
    await client.end();
    // The agent connected only once, so no firewall change interrupted its connection.
    expect((await agent.log(1000)).split('\n').filter((line) => line.includes('"event":"connected"'))).toHaveLength(1);
  });

  test('an apply of the recipes refuses configuration that the configured programs do not accept', async () => {
    report();
    await orchestrator.call(removeAssignment, { params: { name: assignment } });
    const changed = changedParameters(parameters);
    await assign({
      ...changed,
      users: { ...changed.users, sudo: 'ALL = nobody' },
      postgresql: { ...changed.postgresql, shared_buffers: '1kB' },
      nginx: { ...changed.nginx, names: ['~('] },
      firewall: { tcp: ['99999'] },
    });
    const applied = await apply();
    expect(applied).toMatchObject({ status: 'failed', summary: { failed: 4, changed: 0 } });
    const said = (id: string) => applied.resources.find((resource) => resource.id === id)?.message ?? '';
    expect(said('sudoers')).toMatch(
      /was refused because `validate` exited with 1: .*expected a fully-qualified path name/s,
    );
    expect(said('site')).toMatch(/was refused because `validate` exited with 1: .*missing closing parenthesis/s);
    expect(said('settings')).toMatch(
      /was refused because `validate` exited with 1: .*outside the valid range for parameter "shared_buffers"/s,
    );
    expect(said('rules')).toMatch(/was refused because `validate` exited with 1: .*(Error|99999)/s);
    const closed = { ...changed, firewall: { ssh_port: 2222 } };
    await orchestrator.call(updateAssignment, { params: { name: assignment }, body: { parameters: closed } });
    const closing = (await apply()).resources.find(({ module, id }) => module === 'firewall' && id === 'rules');
    expect(closing?.message).toMatch(/exited with 1: .*sshd listens on port 22; set ssh_port to it/s);
    // The previous configuration is still in effect.
    expect(await page(8080)).toContain('<h1>Moved</h1>');
    expect(await reaches(machine.address, 5432)).toBe(true);
    expect(await machine.sh(`${ssh} ada@127.0.0.1 sudo -n id -u`)).toBe('0\n');
  });

  test('an assignment of the recipes refuses parameter values that a shell or a configuration file would interpret', async () => {
    report();
    await orchestrator.call(removeAssignment, { params: { name: assignment } });
    const changed = changedParameters(parameters);
    await assign(changed);
    const values = { ...changed, ...hostile };
    const update = orchestrator.call(updateAssignment, { params: { name: assignment }, body: { parameters: values } });
    const { problem } = await update.then(
      () => expect.unreachable('the assignment was saved'),
      (error: ApiError) => error,
    );
    expect(problem.code).toBe('invalid_input');
    expect(Object.fromEntries((problem.errors ?? []).map(({ path, message }) => [path, message]))).toEqual(
      Object.fromEntries(Object.entries(refusals).map(([path, words]) => [path, expect.stringContaining(words)])),
    );
    const created = { name: 'hostile', modules: [...recipes], selector: 'role=all', parameters: values };
    await expect(orchestrator.call(createAssignment, { body: created })).rejects.toMatchObject({
      problem: { code: 'invalid_input', errors: problem.errors },
    });
    expect(await apply()).toMatchObject({ status: 'succeeded', error: null });
    expect(
      await machine.sh('ls /pwned 2> /dev/null || true; nft list tables; apt-config dump | grep -c pwned || true'),
    ).toBe('table inet muster_firewall\n0\n');
    expect(await machine.sh('cat /etc/sudoers.d/muster-admins')).toBe('%admins ALL=(ALL:ALL) NOPASSWD: ALL\n');
    expect(await machine.sh('systemctl --failed --no-legend')).toBe('');
  });

  test('an upload refuses a recipe whose own values its parameters do not accept', async () => {
    const content = recipeText('backup').replace('default: 14', 'default: 0');
    await expect(orchestrator.call(uploadModule, { body: { name: 'backup', content } })).rejects.toMatchObject({
      problem: { code: 'module_invalid', errors: [{ message: expect.stringContaining('must be at least 1') }] },
    });
  });

  test('planning the containers recipe succeeds', async () => {
    report();
    const planned = await plan('compose-stack');
    expect(planned).toMatchObject({ status: 'succeeded', error: null });
    const stack = planned.resources.filter(({ module }) => module === 'compose-stack');
    expect(Object.fromEntries(stack.map(({ id, action, status }) => [id, `${action} ${status}`]))).toEqual({
      docker: 'create would_change',
      'compose-program': 'create would_change',
      'docker-service': 'update would_change',
      stack: 'create would_change',
    });
    expect(stack.find(({ id }) => id === 'stack')?.changes).toContainEqual({
      field: 'services',
      from: null,
      to: 'running',
    });
    expect(JSON.stringify(planned)).not.toContain('pwned');
  });

  test('applying the recipes over those of version 0.1 changes only what moved between files', async () => {
    report();
    for (const [name, content] of firstRecipes()) await orchestrator.call(uploadModule, { body: { name, content } });
    expect(await apply()).toMatchObject({ status: 'succeeded', error: null });
    expect(await machine.sh('cat /etc/postgresql/15/main/muster-access')).toContain('app app\n');
    for (const name of recipes) await orchestrator.call(uploadModule, { body: { name, content: recipeText(name) } });
    const applied = await apply();
    expect(applied).toMatchObject({ status: 'succeeded', error: null });
    expect(changesOf(applied)).toEqual(changesSinceFirst);
    expect((await apply()).summary).toMatchObject({ changed: 0, removed: 0, failed: 0, skipped: 0 });
    expect(await drift()).toMatchObject({ status: 'in_sync' });
    expect(await page(8080)).toContain('<h1>Moved</h1>');
    expect(await machine.sh(`${ssh} ada@127.0.0.1 sudo -n id -u`)).toBe('0\n');
    const client = new Client({ host: machine.address, user: 'app', database: 'app', password });
    await client.connect();
    expect((await client.query('SELECT count(*)::int AS rows FROM kept')).rows).toEqual([{ rows: 0 }]);
    await client.end();
    await machine.sh('/usr/local/sbin/muster-backup');
  });

  test('removing all recipes leaves only the paths that their pages list', async () => {
    report();
    await orchestrator.call(removeAssignment, { params: { name: assignment } });
    const removed = await apply();
    expect(removed).toMatchObject({ status: 'succeeded', error: null });
    const after = machine.changes();
    const paths = new Set([...Object.keys(before), ...Object.keys(after)]);
    const different = [...paths].filter((path) => after[path] !== before[path]);
    const clients = new Set((await machine.sh(`dpkg --listfiles ${clientsOfDatabase.join(' ')}`)).split('\n'));
    const stays = (path: string) => clients.has(path) || staysAfterwards.some((pattern) => pattern.test(path));
    expect(different.filter((path) => !stays(path))).toEqual([]);
    expect(
      await machine.sh(
        'getent passwd ada bob || true; getent group admins || true; nft list tables 2> /dev/null || true',
      ),
    ).toBe('');
    expect(await readSysctls()).toBe(sysctls);
    // The database and its data still exist.
    expect(different).toContain('/var/lib/postgresql/15/main/PG_VERSION');
  });
});
