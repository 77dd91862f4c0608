import type { ResolvedResource } from '@muster/protocol/module';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { operation } from '../agent/src/converge/test/desired.ts';
import { DrivenAgent } from './hosts/driven-agent.ts';
import type { Machine } from './hosts/machine.ts';
import { recipesRoot } from './hosts/recipes-root.ts';
import { type Declared, resolved } from './hosts/subjects/subject.ts';
import { noHosts } from './hosts/test.ts';
import { TestHosts } from './hosts/test-hosts.ts';

/** A real Git server over SSH, and a working copy that belongs to an unprivileged user. */

const reason = noHosts();

// While the server sends the repository, its command searches for the key in data that every user can read.
const prepare = `
useradd --create-home deploy
useradd --create-home --shell /bin/sh git
ssh-keygen -q -t ed25519 -N '' -f /run/key
needle=$(sed -n 2p /run/key | cut -c1-40)
cat > /usr/local/bin/serve <<TEXT
#!/bin/sh
cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | tr '\\\\0' '\\\\n' > /tmp/visible
# Started only now, because the arguments of grep contain what it searches for.
grep -c -e "$needle" -e BEGIN /tmp/visible > /tmp/seen
cat /dev/shm/* /dev/shm/.[!.]* /run/.[!.]* /tmp/.[!.]* 2>/dev/null | grep -c "$needle" >> /tmp/seen
exec git-shell -c "\\$SSH_ORIGINAL_COMMAND"
TEXT
chmod 755 /usr/local/bin/serve
mkdir -m 700 /home/git/.ssh
echo "command=\\"/usr/local/bin/serve\\" $(cat /run/key.pub)" > /home/git/.ssh/authorized_keys
chown -R git:git /home/git/.ssh
ssh-keygen -A
mkdir -p /run/sshd
systemctl start ssh
cd /home/git
runuser -u git -- sh -c '
  export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
  git init -q -b main app && cd app && echo 1 > f && git add f && git commit -qm 1 && git tag v1'
`;

describe.skipIf(reason !== null)(`git over ssh${reason === null ? '' : ` (${reason})`}`, () => {
  let hosts: TestHosts;
  let machine: Machine;
  let agent: DrivenAgent;
  beforeAll(async () => {
    hosts = await TestHosts.open({ base: await recipesRoot() });
    machine = await hosts.start('git');
    await machine.sh(prepare);
    agent = await DrivenAgent.start(machine);
  });
  afterAll(() => hosts?.end());

  const apply = async (...declared: Declared[]) => {
    const resources: ResolvedResource[] = declared.map(resolved);
    return (await agent.run(operation('apply', resources))).results;
  };

  test('clones only from a known host, with a key that no other user can see, and leaves nothing behind', async () => {
    const before = machine.changes();
    const key = await machine.sh('cat /run/key');
    const [, hostKey = ''] = (await machine.sh('cat /etc/ssh/ssh_host_ed25519_key.pub')).split(' ');
    const copy = {
      git: { path: '/srv/app', url: 'ssh://git@127.0.0.1/home/git/app', revision: 'main', user: 'deploy', key },
    };
    const host = { 'known-host': { name: '127.0.0.1', key_type: 'ssh-ed25519' as const, key: hostKey } };
    expect(await apply(copy)).toMatchObject([
      { status: 'failed', message: expect.stringMatching(/Host key verification failed.*`known-host`/) },
    ]);
    expect(machine.changes()).toEqual(before);
    expect(await apply(host)).toMatchObject([{ status: 'changed' }]);
    expect(await apply(host, copy)).toMatchObject([{ status: 'unchanged' }, { status: 'changed' }]);
    expect(await machine.sh('cat /tmp/seen')).toBe('0\n0\n');
    expect(await machine.sh('stat -c %U /srv/app /srv/app/.git /srv/app/f')).toBe('deploy\ndeploy\ndeploy\n');
    expect(await apply(host, copy)).toMatchObject([{ status: 'unchanged' }, { status: 'unchanged' }]);
    const other = await machine.sh(
      "runuser -u git -- sh -c 'cd ~/app && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m 2 && git rev-parse HEAD'",
    );
    expect(await apply(host, copy)).toMatchObject([
      { status: 'unchanged' },
      { status: 'changed', changes: [{ field: 'revision', to: other.trim() }] },
    ]);
    expect((await agent.run(operation('drift'))).results).toEqual([]);
    await apply();
    expect(await machine.sh('ls -A /srv; cat /etc/ssh/ssh_known_hosts 2>/dev/null || true')).toBe('');
  });
});
