import { derivedRoot } from '../../derived-root.ts';

/** Release of Debian whose package has the second version of Compose. */
const laterSuite = 'trixie';
/** Where the second version is, until a test installs it as the plugin. */
export const secondCompose = '/opt/compose/docker-compose';
export const composePlugin = '/usr/libexec/docker/cli-plugins/docker-compose';

/**
 * Builds the Debian root of all tests of containers. It has Podman, Docker, a registry, BusyBox for images, and both
 * versions of Compose: the first one, as Debian's program, and the second one in another directory.
 */
export const containersRoot = (): Promise<string> =>
  derivedRoot({
    name: 'containers',
    packages: [
      ...['podman', 'crun', 'netavark', 'aardvark-dns', 'iptables', 'busybox-static', 'docker-compose', 'docker.io'],
      ...['docker-registry', 'skopeo'],
    ],
    finish: `
echo "deb $mirror ${laterSuite} main" > "$new/etc/apt/sources.list"
chroot "$new" apt-get update -qq
chroot "$new" sh -c 'cd /tmp && apt-get download -qq docker-compose && dpkg-deb -x docker-compose_*.deb later'
mkdir "$new/opt/compose"
mv "$new/tmp/later${composePlugin}" "$new${secondCompose}"
rm -rf "$new"/tmp/*
chroot "$new" systemctl disable -q docker.service docker.socket docker-registry.service
`,
  });
