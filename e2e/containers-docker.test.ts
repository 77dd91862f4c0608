import { describe, expect, test } from 'vitest';
import { operation } from '../agent/src/converge/test/desired.ts';
import { DrivenAgent } from './hosts/driven-agent.ts';
import {
  dockerSubjects,
  dockerUp,
  registry,
  registryPassword,
  registryUp,
  registryUser,
  runs,
} from './hosts/subjects/containers/container.ts';
import { containersRoot } from './hosts/subjects/containers/root.ts';
import { type Declared, resolved } from './hosts/subjects/subject.ts';
import { describeSubjects } from './hosts/subjects/suite.ts';
import { noHosts } from './hosts/test.ts';
import { TestHosts } from './hosts/test-hosts.ts';

const open = async () => TestHosts.open({ base: await containersRoot() });

describeSubjects('containers of Docker on a test host', dockerSubjects, open);

const reason = noHosts();

describe.skipIf(reason !== null)(`containers of Docker${reason === null ? '' : ` (${reason})`}`, () => {
  test('pulls with a password that is not left in any file, and reports a daemon that is not running', async () => {
    const hosts = await open();
    try {
      const machine = await hosts.start('docker');
      const agent = await DrivenAgent.start(machine);
      const image = `${registry}/shop/app:1`;
      await machine.sh(`${dockerUp}${registryUp}
docker login --username '${registryUser}' --password '${registryPassword}' ${registry} > /dev/null 2>&1
docker tag localhost/app:1 ${image}
docker push --quiet ${image} > /dev/null
docker rmi ${image} > /dev/null
rm -r /root/.docker
cat > /usr/local/bin/docker <<'END'
#!/bin/sh
{ tr '\\0' ' ' < /proc/$$/cmdline; echo; env; } >> /run/started
exec /usr/bin/docker "$@"
END
chmod 755 /usr/local/bin/docker`);
      const declared: Declared = {
        container: {
          ...{ name: 'web', engine: 'docker', image, command: runs, networks: ['front'] },
          ...{
            environment: { TOKEN: 'correct-horse' },
            registry_user: registryUser,
            registry_password: registryPassword,
          },
        },
      };
      const apply = async (...all: Declared[]) => (await agent.run(operation('apply', all.map(resolved)))).results;
      const results = await apply(declared);
      expect(results).toMatchObject([{ status: 'changed', message: null }]);
      expect(await machine.exec('/usr/bin/docker', 'inspect', '--format', '{{.Config.Env}}', 'web')).toContain(
        'correct-horse',
      );
      const started = await machine.sh('cat /run/started');
      expect(started).toContain('pull --quiet');
      expect(JSON.stringify([results, started])).not.toMatch(/horse|battery|staple|YWRh/);
      expect(await machine.sh('ls -d /root/.docker /run/muster-registry-login 2> /dev/null || true')).toBe('');
      expect(await apply(declared)).toMatchObject([{ status: 'unchanged' }]);

      await machine.sh('systemctl stop docker docker.socket');
      expect(await apply(declared)).toMatchObject([
        { status: 'failed', message: expect.stringContaining('docker does not respond: Cannot connect') },
      ]);
      await machine.sh('systemctl start docker');
      await apply();
      expect(await machine.exec('/usr/bin/docker', 'ps', '--all', '--quiet')).toBe('');
    } finally {
      await hosts.end();
    }
  });
});
