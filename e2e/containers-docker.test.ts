import { describe, expect, test } from 'vitest';
import { operation } from '../agent/src/converge/test/desired.ts';
import { expectModuleApplied } from './hosts/documentation/documented-module.ts';
import { DrivenAgent } from './hosts/driven-agent.ts';
import { dockerComposeUp } from './hosts/subjects/containers/compose.ts';
import {
  containersList,
  containersUp,
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

/**
 * Shell text that starts a registry which both engines use instead of docker.io. Unlike the other test images, its images
 * have a command.
 */
const publicRegistryUp = `${registryUp.replace(/^auth: .*\n/m, '')}
printf '[[registry]]\\nprefix = "docker.io/library"\\nlocation = "${registry}/library"\\ninsecure = true\\n' > /etc/containers/registries.conf.d/public.conf
mkdir -p /etc/systemd/system/docker.service.d
printf '[Service]\\nExecStart=\\nExecStart=/usr/sbin/dockerd -H fd:// --registry-mirror http://${registry}\\n' > /etc/systemd/system/docker.service.d/mirror.conf
systemctl daemon-reload
podman create --quiet --name made localhost/app:1 /bin/sh > /dev/null
printf '#!/bin/sh\\n' > /tmp/migrate
chmod 755 /tmp/migrate
podman cp /tmp/migrate made:/bin/migrate
podman commit --quiet --change 'CMD ${JSON.stringify(runs)}' made localhost/made > /dev/null
for image in nginx:1.27.4 notes:1.4 batch:2.0 schema:3.1 blog:1.0; do
  podman push --quiet localhost/made ${registry}/library/$image > /dev/null
done
podman rm made > /dev/null
`;

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

  test('the idioms of the documentation are planned as they are applied, and removed', async () => {
    const hosts = await open();
    try {
      const machine = await hosts.start('idiom-containers');
      const agent = await DrivenAgent.start(machine);
      await machine.sh(`${containersUp}${publicRegistryUp}${dockerComposeUp}`);
      const apply = async (...all: Declared[]) => (await agent.run(operation('apply', all.map(resolved)))).results;
      // The module removes this container.
      await machine.sh('podman create --quiet --name wiki localhost/app:1 /bin/sh > /dev/null');
      const content = `services: { web: { image: "docker.io/library/blog:1.0", volumes: ["data:/data"] } }
volumes: { data: {} }
`;
      const blog: Declared = { compose: { name: 'blog', path: '/srv/blog/compose.yaml', content, engine: 'docker' } };
      expect(await apply(blog)).toMatchObject([{ status: 'changed', message: null }]);
      const objects = async () =>
        (
          await machine.sh(`${containersList}; ${containersList.replaceAll('podman', 'docker')}
podman images --format '{{.Repository}}:{{.Tag}}'; docker images --format '{{.Repository}}:{{.Tag}}'; docker volume ls --quiet`)
        )
          .split('\n')
          .filter((line) => /web|notes|wiki|shop|blog|^batch /.test(line));
      expect(await objects()).toEqual(['wiki created', '/blog-web-1 running', 'blog:1.0', 'blog_data']);
      await expectModuleApplied(agent, 'idiom-containers', { present: ['podman', 'skopeo'] });
      expect(await objects()).toEqual(['wiki created']);
    } finally {
      await hosts.end();
    }
  });
});
