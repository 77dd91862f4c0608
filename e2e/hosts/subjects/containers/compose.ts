import { dirname } from 'node:path';
import { volatilePaths } from '../../root-difference.ts';
import type { Subject } from '../subject.ts';
import { containersList, containersUp, dockerUp } from './container.ts';
import { composePlugin, secondCompose } from './root.ts';

/**
 * Shell text that starts Podman with the images of the tests, and its service for Compose. On a test host, no service may
 * create a keyring. The service that runs for some seconds after the boot has the former configuration.
 */
export const podmanComposeUp = `${containersUp}echo 'keyring = false' >> /etc/containers/containers.conf
systemctl stop podman.socket podman.service
systemctl start podman.socket
mkdir -p /srv/shop/conf
`;

/** Shell text that starts Docker with the images of the tests, and installs the second version of Compose. */
export const dockerComposeUp = `mkdir -p ${dirname(composePlugin)} /srv/shop/conf
ln -s ${secondCompose} ${composePlugin}
${dockerUp}`;

/** A command that runs until it receives SIGTERM. */
export const loop = `["/bin/sh", "-c", "trap 'exit 0' TERM; while :; do sleep 0.1; done"]`;

/** Returns a Compose file with a service for each image. */
export const composeFile = (services: Readonly<Record<string, string>>, more = ''): string =>
  `services:\n${Object.entries(services)
    .map(([name, rest]) => `  ${name}:\n    command: ${loop}\n${rest.replace(/^(?=.)/gm, '    ')}\n`)
    .join('')}${more}`;

const shop = composeFile(
  {
    web: 'image: localhost/app:1\nenvironment: { TOKEN: "${TOKEN}", MODE: plain }\nvolumes: ["data:/data", "./conf:/conf:ro"]',
    worker: 'image: localhost/app:1\nscale: 2\ndepends_on: [web]',
  },
  'volumes: { data: {} }\n',
);
const changedShop = composeFile({
  web: 'image: localhost/app:2\nenvironment: { TOKEN: "${TOKEN}" }',
  debug: 'image: localhost/app:1\nprofiles: [debug]',
});

/** Shell text that prints the objects of an engine, without their ids. */
const stateOf = (engine: 'podman' | 'docker'): string =>
  `${engine === 'podman' ? containersList : containersList.replaceAll('podman', 'docker')}
${engine} images --format '{{.Repository}}:{{.Tag}}' | sort; ${engine} volume ls -q; ${engine} network ls --format '{{.Name}}' | sort`;

const podman = {
  slow: true,
  state: stateOf('podman'),
  volatile: [...volatilePaths, '/var/lib/containers', '/var/tmp', '/etc/cni', '/var/lib/cni'],
};

export const composeSubjects: readonly Subject[] = [
  {
    ...podman,
    name: 'compose, new',
    slow: false,
    prepare: podmanComposeUp,
    desired: {
      compose: {
        name: 'shop',
        path: '/srv/shop/compose.yaml',
        content: shop,
        environment: { TOKEN: `it's a "secret" $HOME #1` },
        remove_volumes: true,
      },
    },
    changed: {
      compose: {
        name: 'shop',
        path: '/srv/shop/compose.yaml',
        content: changedShop,
        environment: { TOKEN: 'another secret' },
        profiles: ['debug'],
        remove_volumes: true,
      },
    },
    tamper: 'podman stop shop_web_1; podman rm -f shop_worker_2',
    moved: ['services'],
  },
  {
    ...podman,
    name: 'compose, taken over',
    // Removal creates a stopped container again, but does not start it.
    state: `{ ${stateOf('podman')}; } | sed -E 's/ (created|initialized|exited)$/ stopped/'`,
    prepare: `${podmanComposeUp}cat > /srv/shop/compose.yaml <<'END'
${composeFile({ web: 'image: localhost/app:2', old: 'image: localhost/app:1' })}END
cd /srv/shop; DOCKER_HOST=unix:///run/podman/podman.sock docker-compose --file compose.yaml up --detach 2> /dev/null
podman stop shop_old_1 > /dev/null
`,
    desired: {
      compose: {
        name: 'shop',
        path: '/srv/shop/compose.yaml',
        content: composeFile({ web: 'image: localhost/app:1' }),
        force: true,
      },
    },
    changed: { compose: { name: 'shop', path: '/srv/shop/compose.yaml', ensure: 'absent', force: true } },
    tamper: 'echo "# by hand" >> /srv/shop/compose.yaml; podman stop shop_web_1',
    moved: ['content', 'services'],
  },
  {
    ...podman,
    name: 'compose, absent',
    // Has no line in common with `content` below: plans show this file, and the tests treat each line of `content` as a
    // secret.
    prepare: `${podmanComposeUp}echo '# by Ada' > /srv/shop/compose.yaml\n`,
    desired: { compose: { name: 'shop', path: '/srv/shop/compose.yaml', ensure: 'absent', force: true } },
    changed: {
      compose: {
        name: 'shop',
        path: '/srv/shop/compose.yaml',
        content: composeFile({ web: 'image: localhost/app:1' }),
        force: true,
      },
    },
    tamper: 'echo again > /srv/shop/compose.yaml',
    moved: ['ensure'],
  },
];

export const dockerComposeSubjects: readonly Subject[] = [
  {
    name: 'compose of Docker, new',
    slow: true,
    state: stateOf('docker'),
    // The units of Podman, which the root has too, write into /var/lib/containers some time after the boot.
    volatile: [...volatilePaths, '/var/lib/docker', '/var/lib/containerd', '/var/lib/containers', '/var/tmp'],
    prepare: dockerComposeUp,
    desired: {
      compose: {
        ...{ name: 'shop', engine: 'docker', path: '/srv/shop/compose.yaml', content: shop },
        ...{ environment: { TOKEN: `it's a "secret" $HOME #1` }, remove_volumes: true },
      },
    },
    changed: {
      compose: {
        ...{ name: 'shop', engine: 'docker', path: '/srv/shop/compose.yaml', content: changedShop },
        ...{ environment: { TOKEN: 'another secret' }, profiles: ['debug'], remove_volumes: true },
      },
    },
    tamper: 'docker stop shop-web-1; docker rm -f shop-worker-2',
    moved: ['services'],
  },
];
