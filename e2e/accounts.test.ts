import type { ResourceResult } from '@muster/protocol';
import type { ResolvedResource, ResourceBodies, ResourceType } from '@muster/protocol/module';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { operation } from '../agent/src/converge/test/desired.ts';
import { DrivenAgent } from './hosts/driven-agent.ts';
import type { Machine } from './hosts/machine.ts';
import { type Declared, resolved } from './hosts/subjects/subject.ts';
import { noHosts } from './hosts/test.ts';
import { TestHosts } from './hosts/test-hosts.ts';

/**
 * Tests accounts, SSH keys, and kernel parameters on a real machine, including interference from users and programs.
 */

const reason = noHosts();
const key = `ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI${'A'.repeat(43)}`;

/** Builds a resource without validation by the orchestrator. */
const raw = <T extends ResourceType>(type: T, body: ResourceBodies[T]): ResolvedResource => {
  const identity = JSON.stringify(body);
  const links = { depends_on: [], reload_on: [], restart_on: [], rerun_on: [], sensitive_fields: [] };
  return { key: `${type}:${identity}`, module: 'site', id: null, name: null, type, identity, body, ...links };
};

describe.skipIf(reason !== null)(`accounts of a test host${reason === null ? '' : ` (${reason})`}`, () => {
  let hosts: TestHosts;
  let machine: Machine;
  let agent: DrivenAgent;
  beforeAll(async () => {
    hosts = await TestHosts.open();
    machine = await hosts.start('accounts');
    agent = await DrivenAgent.start(machine);
  });
  beforeEach(() => agent.forget());
  afterAll(() => hosts?.end());

  const sh = (text: string) => machine.sh(text);
  const apply = async (...resources: ResolvedResource[]) => (await agent.run(operation('apply', resources))).results;
  const plan = async (...resources: ResolvedResource[]) => (await agent.run(operation('plan', resources))).results;
  const declared = (...all: Declared[]) => all.map(resolved);
  const said = (results: ResourceResult[]) => results.map(({ status, message }) => ({ status, message }));
  const failed = (message: RegExp) => ({ status: 'failed', message: expect.stringMatching(message) });

  test('an apply creates a group, a user, and an SSH key as planned, and the next apply removes them', async () => {
    const before = machine.changes();
    const desired = declared(
      { 'group-unix': { name: 'deploy', gid: 1800 } },
      { 'group-unix': { name: 'ops', gid: 1899 } },
      { 'user-unix': { name: 'deploy', uid: 1801, primary_group: 'deploy', additional_groups: ['ops', 'games'] } },
      { 'user-unix': { name: 'other', additional_groups: ['ops'], home: '/srv/homes/other' } },
      { 'file-unix': { path: '/srv/owned', content: 'x', owner: 'deploy', group: 'ops' } },
      { 'ssh-authorized-key': { user: 'deploy', key, comment: 'one' } },
      { 'ssh-authorized-key': { user: 'deploy', key: key.replace('AIAA', 'AIBB'), comment: 'two' } },
    );
    const planned = await plan(...desired);
    expect(planned.map(({ status }) => status)).toEqual(desired.map(() => 'would_change'));
    const applied = await apply(...desired);
    expect(applied.map(({ status, changes }) => ({ status, changes }))).toEqual(
      planned.map(({ changes }) => ({ status: 'changed', changes })),
    );
    expect((await apply(...desired)).map(({ status }) => status)).toEqual(desired.map(() => 'unchanged'));
    const listing = await sh(
      'id deploy; id -Gn other; stat -c "%U %G %a" /home/deploy/.ssh /home/deploy/.ssh/* /srv/owned',
    );
    expect(listing.split('\n')).toEqual([
      'uid=1801(deploy) gid=1800(deploy) groups=1800(deploy),60(games),1899(ops)',
      'other ops',
      'deploy deploy 700',
      'deploy deploy 600',
      'deploy ops 644',
      '',
    ]);
    const removals = await apply();
    expect(removals.map(({ status }) => status)).toEqual(desired.map(() => 'changed'));
    expect(machine.changes()).toEqual(before);
  });

  test('an apply replaces an SSH key, and deletes the file when its last key is removed', async () => {
    await sh('useradd -m rot');
    const before = machine.changes();
    const one = resolved({ 'ssh-authorized-key': { user: 'rot', key } });
    const two = resolved({ 'ssh-authorized-key': { user: 'rot', key: key.replace('AIAA', 'AIBB') } });
    await apply(one);
    await apply(two);
    expect(await sh('wc -l < /home/rot/.ssh/authorized_keys')).toBe('1\n');
    await apply();
    expect(machine.changes()).toEqual(before);
    await sh('userdel -r rot 2>&1 || :');
  });

  test('an apply keeps and reports the home directory of a removed user if files were added to it', async () => {
    const users = declared({ 'user-unix': { name: 'used' } }, { 'user-unix': { name: 'plain' } });
    await apply(...users);
    await sh('echo mine > /home/used/mine; chown used: /home/used/mine');
    expect(said(await apply())).toEqual([
      expect.objectContaining({ status: 'changed' }),
      { status: 'changed', message: expect.stringMatching(/\/home\/used is kept/) },
    ]);
    expect(await sh('ls /home; cat /home/used/mine; getent passwd used plain || :')).toBe('used\nmine\n');
    await sh('rm -rf /home/used');
  });

  test("an apply removes a user's home directory if `remove_home` is set, but not one that others use", async () => {
    await sh(`useradd -m -U gone && mkdir -p /home/gone/deep && echo x > /home/gone/deep/x && ln -s /etc /home/gone/etc
      useradd -m -U -d /home/shared shared1 && useradd -M -U -d /home/shared/sub shared2
      useradd -M -U -d /etc/ system1 && useradd -m -U foreign && chown root:root /home/foreign
      useradd -m -U declared && mkdir /srv/open && chmod 777 /srv/open && useradd -m -U -d /srv/open/movable movable`);
    const absent = (name: string) => ({ 'user-unix': { name, ensure: 'absent' as const, remove_home: true } });
    const gone = declared(absent('gone'));
    expect(await plan(...gone)).toMatchObject([
      { message: expect.stringContaining('/home/gone is removed with its content') },
    ]);
    expect(await apply(...gone)).toMatchObject([{ status: 'changed' }]);
    expect(
      await sh('test -e /home/gone || echo gone; test -e /etc/passwd && getent passwd gone || echo no account'),
    ).toBe('gone\nno account\n');
    expect(await apply(...gone)).toMatchObject([{ status: 'unchanged' }]);
    const refused = await apply(
      ...declared(...['shared1', 'system1', 'foreign', 'movable', 'declared'].map(absent), {
        'file-unix': { path: '/home/declared/f', content: '' },
      }),
    );
    expect(refused.slice(0, 5)).toMatchObject([
      failed(/contains, the home directory of shared2/),
      failed(/directory of the system/),
      failed(/belongs to another user/),
      failed(/another user could replace it/),
      failed(/a resource declares this directory/),
    ]);
    expect(await sh('ls -d /home/shared /etc/passwd /home/foreign /srv/open/movable /home/declared | wc -l')).toBe(
      '5\n',
    );
  });

  test('an apply removes the home directory of an account that it recreated with a home directory', async () => {
    await apply(...declared({ 'user-unix': { name: 'again', create_home: false } }));
    await sh('userdel again');
    await apply(...declared({ 'user-unix': { name: 'again', create_home: true } }));
    expect(await sh('ls -d /home/again')).toBe('/home/again\n');
    await apply();
    expect(await sh('test -e /home/again || echo gone')).toBe('gone\n');
  });

  test('an apply keeps the primary group of a removed user if the group existed before the user', async () => {
    await sh('groupadd -g 1850 shared');
    const before = machine.changes();
    await apply(resolved({ 'user-unix': { name: 'shared' } }));
    expect(await sh('id -g shared')).toBe('1850\n');
    await apply();
    expect(machine.changes()).toEqual(before);
    await sh('groupdel shared');
  });

  test('an apply neither removes nor renumbers an account in use, and reports the processes or users that use it', async () => {
    await sh(`useradd -M busy; setpriv --reuid busy sleep 1000 > /dev/null 2>&1 &
      until pgrep -U busy -x sleep; do sleep 0.05; done`);
    expect(
      said(
        await apply(
          ...declared({ 'user-unix': { name: 'busy', uid: 4000 } }),
          ...declared({ 'file-unix': { path: '/srv/goes-on' } }),
        ),
      ),
    ).toEqual([failed(/used by process \d+ \(sleep\)/), expect.objectContaining({ status: 'changed' })]);
    expect(said(await apply(...declared({ 'user-unix': { name: 'busy', ensure: 'absent' } })))[0]).toEqual(
      failed(/still running: sleep \(\d+\)/),
    );
    await sh('pkill -U busy; while pgrep -U busy; do sleep 0.05; done; usermod -aG audio busy');
    expect(said(await apply(...declared({ 'group-unix': { name: 'busy', ensure: 'absent' } })))).toEqual([
      failed(/primary group of busy/),
    ]);
    expect(said(await plan(...declared({ 'group-unix': { name: 'audio', ensure: 'absent' } })))).toEqual([
      failed(/members: busy/),
    ]);
    // A group can be removed in the same operation as its last member.
    const together = declared(
      { 'user-unix': { name: 'busy', ensure: 'absent' } },
      { 'group-unix': { name: 'audio', ensure: 'absent' } },
    );
    expect((await apply(...together)).map(({ status }) => status)).toEqual(['changed', 'changed']);
    expect((await apply()).map(({ status }) => status)).toEqual(['changed', 'changed']);
    expect(await sh('getent group audio')).toBe('audio:x:29:busy\n');
    await sh('userdel busy');
  });

  test('an apply keeps and reports the mailbox and the declared home directory of a removed user', async () => {
    const before = machine.changes();
    const home = resolved({ 'directory-unix': { path: '/srv/kept', mode: '0750' } });
    const [kept, twin] = declared(
      { 'user-unix': { name: 'kept', home: '/srv/kept' } },
      { 'user-unix': { name: 'twin' } },
    );
    await apply(kept as ResolvedResource, twin as ResolvedResource, home);
    await sh('echo "From x" > /var/mail/twin');
    expect(said(await apply(home))).toEqual([
      expect.objectContaining({ status: 'unchanged' }),
      { status: 'changed', message: expect.stringMatching(/mail in \/var\/mail\/twin is kept/) },
      { status: 'changed', message: expect.stringMatching(/\/srv\/kept is kept, because it is declared/) },
    ]);
    expect(await sh('cat /var/mail/twin; stat -c %a /srv/kept; getent passwd kept twin || :')).toBe('From x\n750\n');
    await sh('rm /var/mail/twin');
    await apply();
    await sh('rm -rf /srv/kept');
    expect(machine.changes()).toEqual(before);
  });

  test('an apply creates files in the home directory of a user that it creates', async () => {
    const before = machine.changes();
    const desired = declared(
      { 'user-unix': { name: 'fresh', uid: 1810 } },
      { 'directory-unix': { path: '/home/fresh', mode: '0711' } },
      { 'file-unix': { path: '/home/fresh/.bashrc', content: 'ours\n' } },
      { 'line-unix': { path: '/home/fresh/.profile', line: '# ours' } },
      { 'ssh-authorized-key': { user: 'fresh', key } },
      { 'directory-unix': { path: '/home/fresh/.ssh', mode: '0755' } },
    );
    expect((await apply(...desired)).filter(({ status }) => status !== 'changed')).toEqual([]);
    expect((await apply(...desired)).filter(({ status }) => status !== 'unchanged')).toEqual([]);
    expect(await sh('stat -c "%U %a" /home/fresh /home/fresh/.bashrc /home/fresh/.profile /home/fresh/.ssh')).toBe(
      'fresh 711\nfresh 644\nfresh 644\nfresh 755\n',
    );
    expect((await apply()).map(({ status }) => status)).toEqual(desired.map(() => 'changed'));
    expect(machine.changes()).toEqual(before);
  });

  test('an apply keeps and reports a symbolic link that replaced a home directory, and does not follow it', async () => {
    const before = machine.changes();
    await apply(resolved({ 'user-unix': { name: 'moved' } }));
    await sh('mv /home/moved /home/old; ln -s /etc /home/moved');
    expect(said(await apply())).toEqual([
      { status: 'changed', message: expect.stringMatching(/\/home\/moved is kept/) },
    ]);
    expect(await sh('readlink /home/moved; ls /etc/skel -A; rm -r /home/moved /home/old')).toBe(
      '/etc\n.bash_logout\n.bashrc\n.profile\n',
    );
    expect(machine.changes()).toEqual(before);
  });

  test('an apply waits for the account lock while another program holds it', async () => {
    await sh('(sleep 1; rm /etc/group.lock) > /dev/null 2>&1 & echo $! > /etc/group.lock');
    expect(said(await apply(...declared({ 'group-unix': { name: 'late' } })))).toEqual([
      { status: 'changed', message: null },
    ]);
    await apply();
  });

  test('an apply does not change an account from a directory service', async () => {
    // Simulates a directory service, because test hosts have no NSS module for one.
    await sh(`
      cp /etc/nsswitch.conf /srv/nsswitch.conf
      sed -i 's/^passwd:.*/passwd: files sss/' /etc/nsswitch.conf
      printf '#!/bin/sh\\n[ "$3" = remote ] && echo remote:x:9000:9000::/home/remote:/bin/sh\\n' > /usr/local/bin/getent
      chmod +x /usr/local/bin/getent
    `);
    const results = await apply(...declared({ 'user-unix': { name: 'remote' } }, { 'user-unix': { name: 'local' } }));
    expect(said(results)).toEqual([
      failed(/remote is not in \/etc\/passwd.*\(sss\)/),
      expect.objectContaining({ status: 'changed' }),
    ]);
    await sh('mv /srv/nsswitch.conf /etc/nsswitch.conf; rm /usr/local/bin/getent');
    await apply();
  });

  test('an apply writes no SSH key through a link or a FIFO, or in a missing home directory', async () => {
    await sh(`
      mkdir -p -m 700 /root/.ssh
      echo "root's own" > /root/.ssh/authorized_keys
      for name in link hard fifo file; do useradd -m $name; done
      ln -s /root/.ssh /home/link/.ssh
      mkdir /home/hard/.ssh /home/fifo/.ssh /home/file/.ssh
      touch /home/secret; ln /home/secret /home/hard/.ssh/authorized_keys
      mkfifo /home/fifo/.ssh/authorized_keys
      ln -s /root/.ssh/authorized_keys /home/file/.ssh/authorized_keys
      for name in hard fifo file; do chown $name: /home/$name/.ssh; done
      chown -h link: /home/link/.ssh; chown -h file: /home/file/.ssh/authorized_keys
      useradd -M -d /home/nowhere homeless
    `);
    const before = machine.changes();
    const users = ['link', 'hard', 'fifo', 'file', 'homeless'];
    const results = await apply(...users.map((user) => resolved({ 'ssh-authorized-key': { user, key } })));
    expect(said(results)).toEqual([
      failed(/\.ssh is a symbolic link.*not followed/),
      failed(/more than one hard link/),
      failed(/authorized_keys is a FIFO/),
      failed(/authorized_keys is a symbolic link/),
      failed(/home directory \/home\/nowhere does not exist/),
    ]);
    await apply();
    expect(machine.changes()).toEqual(before);
    await sh(
      'for name in link hard fifo file homeless; do userdel -r $name 2>&1; done; rm -rf /root/.ssh /home/secret',
    );
  });

  test('the agent refuses resources that the orchestrator would have rejected', async () => {
    const before = machine.changes();
    const hostile = [
      raw('user-unix', { name: '-x' }),
      raw('user-unix', { name: '--help' }),
      raw('user-unix', { name: 'a:0:0::/root:/bin/sh\nx' }),
      raw('user-unix', { name: '0' }),
      raw('user-unix', { name: 'ann', shell: '/bin/sh\nroot2::0:0::/:/bin/sh' }),
      raw('group-unix', { name: '-x' }),
      raw('ssh-authorized-key', { user: 'root', key: `${key}\n${key}` }),
      raw('ssh-authorized-key', { user: 'root', key, comment: `x\n${key}` }),
      raw('sysctl', { key: '../../etc/passwd', value: 'x' }),
      raw('sysctl', { key: 'net.//.ipv4', value: 'x' }),
      raw('sysctl', { key: 'net.ipv4', value: '1' }),
      raw('sysctl', { key: 'net.ipv4.ip_forward', value: '1\nkernel.core_pattern = |/tmp/x' }),
      raw('hostname', { name: '-x' }),
      raw('hostname', { name: 'a\nb' }),
      raw('timezone', { name: '../../../etc/passwd' }),
      raw('timezone', { name: 'Europe' }),
      raw('timezone', { name: 'Nowhere/Land' }),
    ];
    for (const results of [await plan(...hostile), await apply(...hostile)])
      expect(results.map(({ identity, status }) => ({ identity, status }))).toEqual(
        hostile.map(({ identity }) => ({ identity, status: 'failed' })),
      );
    await apply();
    expect(machine.changes()).toEqual(before);
  });

  test('an apply reports a kernel parameter that does not exist, cannot be set, or differs at boot', async () => {
    const parameter = (name: string, value: string) => resolved({ sysctl: { key: name, value } });
    expect(said(await apply(parameter('net.ipv4.no_such_thing', '1'), parameter('kernel.ostype', 'Other')))).toEqual([
      failed(/has no parameter net\.ipv4\.no_such_thing/),
      failed(/kernel\.ostype is read-only/),
    ]);
    await sh(`
      mount -o remount,bind,rw /proc/sys
      echo "net.ipv4.ip_forward=0" > /etc/sysctl.d/99-theirs.conf
      mkfifo /etc/sysctl.d/98-fifo.conf
    `);
    const [late] = said(await apply(parameter('net.ipv4.ip_forward', '1')));
    expect(late).toEqual({ status: 'changed', message: expect.stringMatching(/99-theirs\.conf is read later/) });
    expect(said(await apply(parameter('net.ipv4.ip_forward', 'many')))).toEqual([failed(/rejected this value/)]);
    await apply();
    await sh('rm /etc/sysctl.d/98-fifo.conf');
    expect(await sh('cat /proc/sys/net/ipv4/ip_forward; ls /etc/sysctl.d; rm /etc/sysctl.d/99-theirs.conf')).toBe(
      '0\n99-sysctl.conf\n99-theirs.conf\nREADME.sysctl\n',
    );
  });
});
