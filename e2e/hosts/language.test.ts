import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  applyAgent,
  checkDrift,
  deleteTag,
  planAgent,
  putTag,
  setAgentStatus,
  uploadModule,
} from '@muster/protocol/http';
import { describe, expect } from 'vitest';
import { describeAnyDatabase } from '../any-database.ts';
import { musterAt } from '../person.ts';
import { HostAgent } from './agent.ts';
import { noHosts, test } from './test.ts';

const reason = noHosts();

const log = '/var/tmp/services.log';
const unit = `[Service]
ExecStart=/bin/sleep infinity
ExecReload=/bin/sh -c "echo reloaded >> ${log}"
`;

/** Returns a module that writes one file, and declares that the shared service reloads when the file changes. */
const part = (name: string, content: string) => `name: ${name}
supports: [{ platform: linux }]
resources:
  - id: conf
    resource: { file-unix: { path: /etc/talk/${name}.conf, content: "${content}" } }
  - id: service
    resource: { service-systemd: { name: talk, running: true, reload_on: [conf] } }
`;

/** Returns a module that notifies the service of another module, if the machine has it. */
const guest = (content: string) => `name: guest
supports: [{ platform: linux }]
resources:
  - id: page
    resource: { file-unix: { path: /etc/talk/guest.html, content: "${content}" } }
    notify: [{ reload: "one:service?" }]
  - id: elsewhere
    variants:
      - when: { platform: linux }
      - when: { platform: linux, distro: kestrel }
        resource: { file-unix: { path: /etc/talk/kestrel.conf, content: x } }
`;

const names = `name: names
supports: [{ platform: linux }]
lookups: { dbs: { selector: "role=db", of: agent.name } }
parameters:
  users:
    type: list
    default: [{ name: ann, keys: [a, b], mode: "0600" }, { name: bob, keys: [c] }]
resources:
  - id: hosts
    resource: { file-unix: { path: /etc/talk/dbs, content: "\${{ lookup.dbs | join(',') }}" } }
  - id: key
    for_each: { user: param.users, key: user.keys }
    where: key != "b"
    resource:
      file-unix: { path: "/etc/talk/\${{ user.name }}-\${{ key }}", content: "x", mode: "\${{ user.mode | omit }}" }
`;

const nodes = `name: nodes
supports: [{ platform: linux }]
lookups:
  addresses: { selector: cluster=blue, of: attr.default_address }
  table: { selector: cluster=blue, of: { name: agent.name, address: attr.default_address } }
resources:
  - id: list
    resource: { file-unix: { path: /etc/nodes, content: "\${{ lookup.addresses | join(' ') }}" } }
  - id: first
    when: "lookup.table[0].address == attr.default_address"
    resource: { file-unix: { path: /etc/first, content: "\${{ lookup.table[0].name }}" } }
  - id: hosts
    resource:
      file-unix:
        path: /etc/hosts.blue
        content: |
          \${{ for node in lookup.table }}
          \${{ node.address }} \${{ node.name }}.blue
          \${{ end }}
`;

const app = `name: app
supports: [{ platform: linux }]
resources:
  - id: release
    resource:
      archive: { path: /opt/app, source: files/app.tar.gz, strip: 1, exclude: ["*.md"], keep: 2, owner: daemon }
  - id: link
    resource: { file-unix: { path: /usr/local/bin/app, symlink: /opt/app/current/bin/app } }
`;

describe.skipIf(reason !== null)(`module language${reason === null ? '' : ` (${reason})`}`, () => {
  describeAnyDatabase('on machines', (startWith, database) => {
    /** Returns the name of a machine. All machines of this file share a network. */
    const named = (role: string) => `${role}-${database === 'SQLite' ? 's' : 'p'}`;

    test('modules share a service, leave out variants, notify each other, loop, and look up other agents on real machines', async ({
      hosts,
      stage,
    }) => {
      const [webName, dbName] = [named('web'), named('db')];
      const [web, db, orchestrator] = await Promise.all([hosts.start(webName), hosts.start(dbName), startWith(stage)]);
      const { call } = orchestrator;
      const { address } = hosts.bridge;
      await Promise.all([HostAgent.install(web, orchestrator, address), HostAgent.install(db, orchestrator, address)]);
      await web.run(['sh', '-euc', 'cat > /etc/systemd/system/talk.service; systemctl daemon-reload'], { input: unit });
      await web.sh('mkdir /etc/talk');
      const upload = (name: string, content: string) => call(uploadModule, { body: { name, content } });
      const params = { node_id: webName };
      const apply = async (...modules: string[]) => {
        const applied = await call(applyAgent, { params, body: { modules } });
        expect(applied, JSON.stringify(applied.resources)).toMatchObject({ status: 'succeeded' });
        return applied;
      };
      /** Returns the number of reloads since the previous call. */
      const reloads = async () => Number(await web.sh(`touch ${log}; grep -c reloaded ${log} || true; rm ${log}`));

      // Both modules declare the service, so one resource has the triggers of both.
      const shared = ['one', 'two', 'guest'];
      for (const name of ['one', 'two']) await upload(name, part(name, '1'));
      await upload('guest', guest('1'));
      const first = await apply(...shared);
      const services = first.resources.filter(({ type }) => type === 'service-systemd');
      expect(services.map(({ identity, action }) => [identity, action])).toEqual([['talk', 'update']]);
      expect(await web.sh('systemctl is-active talk; ls /etc/talk')).toBe('active\nguest.html\none.conf\ntwo.conf\n');
      await reloads();

      await upload('two', part('two', '2'));
      expect((await apply(...shared)).resources.at(-1)).toMatchObject({ type: 'service-systemd', action: 'reload' });
      expect(await reloads()).toBe(1);
      await upload('one', part('one', '2'));
      await upload('two', part('two', '3'));
      await upload('guest', guest('2'));
      await apply(...shared);
      expect(await reloads()).toBe(1);
      expect((await apply(...shared)).summary).toMatchObject({ unchanged: 4, changed: 0 });
      expect(await reloads()).toBe(0);

      // A machine without the notified service applies the module without it.
      const alone = { params: { node_id: dbName }, body: { modules: ['guest'] } };
      await db.sh('mkdir /etc/talk');
      expect(await call(applyAgent, alone)).toMatchObject({ status: 'succeeded', summary: { total: 1 } });
      expect(await db.sh('ls /etc/talk')).toBe('guest.html\n');

      // A plan is bound to the agents that its lookups found.
      await upload('names', names);
      const planned = await call(planAgent, { params, body: { modules: ['names'] } });
      await call(putTag, { params: { node_id: dbName, key: 'role' }, body: { value: 'db' } });
      const bound = { params, body: { modules: [], plan_id: planned.operation_id } };
      await expect(call(applyAgent, bound)).rejects.toThrow('the lookup names:dbs has changed since the plan');
      expect(await web.sh('ls /etc/talk')).not.toContain('dbs');
      await apply('names');
      expect(await web.sh('cat /etc/talk/dbs; stat -c "%n %a" /etc/talk/*-*')).toBe(
        `${dbName}/etc/talk/ann-a 600\n/etc/talk/bob-c 644\n`,
      );
    });

    test('lookups have the values of approved agents only, in order, and select one machine', async ({
      hosts,
      stage,
    }) => {
      const [webName, dbName, newName] = [named('west'), named('east'), named('north')];
      const machines = [hosts.start(webName), hosts.start(dbName), hosts.start(newName)] as const;
      const [web, db, fresh, orchestrator] = await Promise.all([...machines, startWith(stage)]);
      const { call } = orchestrator;
      const { address } = hosts.bridge;
      // The address of a machine is that of the interface with the default route.
      for (const machine of [web, db, fresh]) await machine.sh(`ip route add default via ${address}`);
      const tags = { cluster: 'blue' };
      const [, , pending] = await Promise.all([
        HostAgent.install(web, orchestrator, address, { tags }),
        HostAgent.install(db, orchestrator, address, { tags }),
        HostAgent.install(fresh, orchestrator, address, { tags, approved: false }),
      ]);
      await call(uploadModule, { body: { name: 'nodes', content: nodes } });
      const apply = async (node_id: string) => {
        const applied = await call(applyAgent, { params: { node_id }, body: { modules: ['nodes'] } });
        expect(applied, JSON.stringify(applied.resources)).toMatchObject({ status: 'succeeded' });
      };
      const onMachines = async (text: string) => [await web.sh(text), await db.sh(text)];
      const lines = (...machines: readonly { name: string; address: string }[]) =>
        [...machines]
          .sort((a, b) => a.name.localeCompare(b.name))
          .map((machine) => `${machine.address} ${machine.name}.blue\n`)
          .join('');

      for (const node of [webName, dbName]) await apply(node);
      expect((await web.sh('cat /etc/nodes')).split(' ').toSorted()).toEqual([db.address, web.address].toSorted());
      expect(await onMachines('cat /etc/hosts.blue')).toEqual([lines(db, web), lines(db, web)]);
      expect(await onMachines('cat /etc/first || true')).toEqual(['', dbName]);

      // The value of an agent counts from its approval until it loses the tag.
      const params = { node_id: pending.nodeId };
      await call(setAgentStatus, { params, body: { status: 'approved', name: newName } });
      await apply(webName);
      expect(await web.sh('cat /etc/hosts.blue')).toBe(lines(db, fresh, web));
      await call(deleteTag, { params: { node_id: dbName, key: 'cluster' } });
      for (const node of [webName, dbName]) await apply(node);
      expect(await onMachines('cat /etc/hosts.blue')).toEqual([lines(fresh, web), lines(fresh, web)]);
      expect(await onMachines('ls /etc/first || true')).toEqual(['', '']);
    });

    test('an archive of a module folder is unpacked as a release, replaced, kept, repaired, and removed', async ({
      hosts,
      stage,
    }) => {
      const [machine, orchestrator] = await Promise.all([hosts.start(named('app')), startWith(stage)]);
      const { call } = orchestrator;
      await HostAgent.install(machine, orchestrator, hosts.bridge.address);
      const { muster } = musterAt(stage, orchestrator);
      const folder = stage.folder('app');
      mkdirSync(join(folder, 'files'));
      writeFileSync(join(folder, 'module.yml'), app);
      /** Uploads the module with the archive of a version. */
      const upload = async (version: string) => {
        const content = stage.folder(`content/app-${version}`);
        mkdirSync(join(content, 'bin'), { recursive: true });
        writeFileSync(join(content, 'bin/app'), `#!/bin/sh\necho app ${version}\n`, { mode: 0o755 });
        writeFileSync(join(content, 'README.md'), 'not for machines\n');
        execFileSync('tar', [
          '-C',
          stage.folder('content'),
          '-czf',
          join(folder, 'files/app.tar.gz'),
          `app-${version}`,
        ]);
        await muster('modules', 'upload', folder);
      };
      const request = { params: { node_id: machine.name }, body: { modules: ['app'] } };
      const apply = async () => {
        const applied = await call(applyAgent, request);
        expect(applied, JSON.stringify(applied.resources)).toMatchObject({ status: 'succeeded' });
        return applied.summary;
      };
      const releases = async () => Number(await machine.sh('ls /opt/app/releases | wc -l'));

      await upload('1.0');
      const planned = await call(planAgent, request);
      expect(planned.resources.find(({ type }) => type === 'archive')).toMatchObject({ action: 'create' });
      expect(await machine.sh('ls /opt')).toBe('');
      await apply();
      expect(await machine.sh('app; stat -c "%U %a" /opt/app/current/bin/app; ls /opt/app/current')).toBe(
        'app 1.0\ndaemon 755\nbin\n',
      );
      expect(await apply()).toMatchObject({ unchanged: 2, changed: 0 });

      // Another archive becomes another release. Of three releases, the last two stay.
      await upload('1.1');
      expect(await apply()).toMatchObject({ unchanged: 1, changed: 1 });
      expect([await machine.sh('app'), await releases()]).toEqual(['app 1.1\n', 2]);
      await upload('1.2');
      await apply();
      expect([await machine.sh('app'), await releases()]).toEqual(['app 1.2\n', 2]);

      await machine.sh('echo echo changed >> /opt/app/current/bin/app');
      const drift = await call(checkDrift, { params: request.params });
      expect(drift).toMatchObject({ status: 'drifted', resources: [{ type: 'archive', corrective: true }] });
      await apply();
      expect(await machine.sh('app')).toBe('app 1.2\n');

      writeFileSync(join(folder, 'module.yml'), 'name: app\nsupports: [{ platform: linux }]\nresources: []\n');
      await muster('modules', 'upload', folder);
      await apply();
      expect(await machine.sh('ls /opt /usr/local/bin')).not.toContain('app\n');
    });
  });
});
