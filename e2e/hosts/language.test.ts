import { applyAgent, planAgent, putTag, uploadModule } from '@muster/protocol/http';
import { describe, expect } from 'vitest';
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

describe.skipIf(reason !== null)(`module language${reason === null ? '' : ` (${reason})`}`, () => {
  test('modules share a service, leave out variants, notify each other, loop, and look up other agents on real machines', async ({
    hosts,
    stage,
  }) => {
    const [web, db, orchestrator] = await Promise.all([hosts.start('web'), hosts.start('db'), stage.orchestrator()]);
    const { call } = orchestrator;
    const { address } = hosts.bridge;
    await Promise.all([HostAgent.install(web, orchestrator, address), HostAgent.install(db, orchestrator, address)]);
    await web.run(['sh', '-euc', 'cat > /etc/systemd/system/talk.service; systemctl daemon-reload'], { input: unit });
    await web.sh('mkdir /etc/talk');
    const upload = (name: string, content: string) => call(uploadModule, { body: { name, content } });
    const params = { node_id: 'web' };
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
    const alone = { params: { node_id: 'db' }, body: { modules: ['guest'] } };
    await db.sh('mkdir /etc/talk');
    expect(await call(applyAgent, alone)).toMatchObject({ status: 'succeeded', summary: { total: 1 } });
    expect(await db.sh('ls /etc/talk')).toBe('guest.html\n');

    // A plan is bound to the agents that its lookups found.
    await upload('names', names);
    const planned = await call(planAgent, { params, body: { modules: ['names'] } });
    await call(putTag, { params: { node_id: 'db', key: 'role' }, body: { value: 'db' } });
    const bound = { params, body: { modules: [], plan_id: planned.operation_id } };
    await expect(call(applyAgent, bound)).rejects.toThrow('the lookup names:dbs has changed since the plan');
    expect(await web.sh('ls /etc/talk')).not.toContain('dbs');
    await apply('names');
    expect(await web.sh('cat /etc/talk/dbs; stat -c "%n %a" /etc/talk/*-*')).toBe(
      'db/etc/talk/ann-a 600\n/etc/talk/bob-c 644\n',
    );
  });
});
