import { volatilePaths } from '../../root-difference.ts';
import type { Subject } from '../subject.ts';

export const registry = '127.0.0.1:5000';

/**
 * Shell text that sets Podman up for a test host, whose root is an overlay that cannot contain another overlay. The
 * host has no cgroup controllers, and no capability for the limits that Podman sets with them.
 */
const podmanUp = `mkdir -p /etc/containers/registries.conf.d
printf '[storage]\\ndriver = "vfs"\\nrunroot = "/run/containers/storage"\\ngraphroot = "/var/lib/containers/storage"\\n' > /etc/containers/storage.conf
printf '[containers]\\ncgroups = "disabled"\\n' > /etc/containers/containers.conf
printf '[[registry]]\\nlocation = "${registry}"\\ninsecure = true\\n' > /etc/containers/registries.conf.d/local.conf
`;

/** Shell text that defines `image NAME TEXT`, which creates a BusyBox image whose file /version contains the text. */
const imageMaker = (engine: string): string => `image() {
  rm -rf /tmp/root; mkdir -p /tmp/root/bin /tmp/root/data; cp /bin/busybox /tmp/root/bin/
  for i in sh sleep echo cat env test; do ln -s busybox /tmp/root/bin/$i; done
  echo "$2" > /tmp/root/version
  tar -C /tmp/root -c . | ${engine} import - "$1" > /dev/null 2>&1
  rm -rf /tmp/root
}
image localhost/app:1 one
image localhost/app:2 two
${engine} network create front > /dev/null
${engine} network create back > /dev/null
`;

export const containersUp = `${podmanUp}${imageMaker('podman')}`;

export const registryUser = 'ada';
export const registryPassword = 'horse-battery staple';

/** Shell text that starts a registry that requires the user and the password. The password hash uses bcrypt. */
export const registryUp = `cat > /etc/docker/registry/config.yml <<'END'
version: 0.1
storage: { filesystem: { rootdirectory: /var/lib/docker-registry }, delete: { enabled: true } }
http: { addr: "${registry}" }
auth: { htpasswd: { realm: test, path: /etc/docker/registry/users } }
END
echo '${registryUser}:$2b$05$abcdefghijklmnopqrstuu/ZIkW1NDqHIoAuQ0hdVpRhjrWpDz83u' > /etc/docker/registry/users
systemctl restart docker-registry
for i in $(seq 100); do bash -c ': > /dev/tcp/127.0.0.1/5000' 2> /dev/null && break; sleep 0.1; done
`;

/** A program that exits immediately when it receives SIGTERM, unlike `sleep` as the first process. */
export const runs = ['/bin/sh', '-c', 'trap "exit 0" TERM; while :; do sleep 0.1; done'];
const byHand = (name: string, options = ''): string =>
  `podman create -q --name ${name} ${options} localhost/app:1 ${runs.map((word) => `'${word}'`).join(' ')} > /dev/null\n`;

/** Shell text that prints the name and the state of each container. */
export const containersList = `podman ps --all --quiet | xargs -r podman container inspect --format '{{.Name}} {{.State.Status}}' | sort`;

const common = {
  slow: true,
  state: `${containersList}
podman images --noheading --sort repository --format '{{.Repository}}:{{.Tag}}'; podman volume ls -q; podman network ls -q`,
  volatile: [...volatilePaths, '/var/lib/containers', '/var/tmp', '/etc/cni', '/var/lib/cni'],
};

export const containerSubjects: readonly Subject[] = [
  {
    ...common,
    name: 'container, new',
    slow: false,
    prepare: containersUp,
    desired: {
      container: {
        name: 'web',
        image: 'localhost/app:1',
        command: runs,
        environment: { GREETING: `it's "1" $HOME`, EMPTY: '', TOKEN: ' a#b=c\\' },
        ports: ['127.0.0.1:8080:80'],
        volumes: ['data:/data', '/srv:/srv:ro'],
        networks: ['front', 'back'],
        user: '0:0',
        restart: 'on-failure:3',
        labels: { 'com.example/role': 'web, "first" {{.}} $x' },
        read_only: true,
        cap_add: ['NET_ADMIN'],
        cap_drop: ['CHOWN', 'SETUID'],
        remove_volumes: true,
      },
    },
    changed: {
      container: {
        name: 'web',
        image: 'localhost/app:2',
        command: runs,
        environment: { GREETING: '2' },
        networks: ['back'],
        remove_volumes: true,
        restart: 'always',
        health_command: 'test -f /version',
        health_interval: '30s',
        health_timeout: '3s',
        health_retries: 2,
        health_start_period: '5s',
      },
    },
    tamper: 'podman stop web; podman network disconnect front web',
    moved: ['networks', 'state'],
  },
  {
    ...common,
    name: 'container, stopped, previously another container',
    prepare: `${containersUp}${byHand('web', '--env A=1 --restart on-failure')}podman start web`,
    desired: {
      container: {
        name: 'web',
        image: 'localhost/app:1',
        command: runs,
        memory: '64M',
        cpus: '1.5',
        state: 'stopped',
        networks: ['none'],
        force: true,
      },
    },
    changed: { container: { name: 'web', image: 'localhost/app:2', command: runs, networks: ['host'], force: true } },
    tamper: 'podman rm -f web; podman rename web-muster-before web; podman start web',
    moved: ['created_by'],
  },
  {
    ...common,
    name: 'container, absent, previously running',
    prepare: `${containersUp}${byHand('web')}podman start web`,
    desired: { container: { name: 'web', ensure: 'absent' } },
    changed: { container: { name: 'web', image: 'localhost/app:1', command: runs, state: 'stopped' } },
    tamper: 'podman rename web-muster-before web',
    moved: ['ensure'],
  },
];

/**
 * Shell text that starts Docker with settings for a test host, which has no cgroup controllers, and on which no program
 * may create a keyring.
 */
export const dockerUp = `cat > /usr/local/bin/plain-crun <<'END'
#!/bin/sh
for word; do
  shift
  set -- "$@" "$word"
  case $word in
    create) set -- "$@" --no-new-keyring ;;
    update) exit 0 ;;
  esac
done
exec /usr/bin/crun --cgroup-manager=disabled "$@"
END
chmod 755 /usr/local/bin/plain-crun
mkdir -p /etc/docker
cat > /etc/docker/daemon.json <<'END'
{
  "storage-driver": "vfs", "iptables": false, "ip6tables": false, "bridge": "none",
  "exec-opts": ["native.cgroupdriver=cgroupfs"],
  "runtimes": { "plain": { "path": "/usr/local/bin/plain-crun" } }, "default-runtime": "plain"
}
END
systemctl stop docker docker.socket
systemctl start docker
${imageMaker('docker')}`;

const docker = {
  slow: true,
  state: `docker ps --all --quiet | xargs -r docker container inspect --format '{{.Name}} {{.State.Status}} {{.HostConfig.RestartPolicy.Name}}' | sort
docker images --format '{{.Repository}}:{{.Tag}}' | sort; docker volume ls -q; docker network ls -q | wc -l`,
  // The units of Podman, which the root has too, write into /var/lib/containers some time after the boot.
  volatile: [...volatilePaths, '/var/lib/docker', '/var/lib/containerd', '/var/lib/containers', '/var/tmp'],
};

export const dockerSubjects: readonly Subject[] = [
  {
    ...docker,
    name: 'container of Docker, new',
    slow: false,
    prepare: dockerUp,
    desired: {
      container: {
        name: 'web',
        engine: 'docker',
        image: 'localhost/app:1',
        command: runs,
        environment: { GREETING: `it's "1" $HOME`, EMPTY: '', TOKEN: ' a#b=c\\' },
        volumes: ['data:/data', '/srv:/srv:ro'],
        networks: ['front', 'back'],
        user: '0:0',
        restart: 'on-failure:3',
        labels: { 'com.example/role': 'web, "first" {{.}} $x' },
        read_only: true,
        cap_add: ['NET_ADMIN'],
        cap_drop: ['CHOWN', 'SETUID'],
        remove_volumes: true,
      },
    },
    changed: {
      container: {
        name: 'web',
        engine: 'docker',
        image: 'localhost/app:2',
        command: runs,
        environment: { GREETING: '2' },
        networks: ['none'],
        health_command: 'test -f /version',
        health_interval: '30s',
        state: 'stopped',
        remove_volumes: true,
      },
    },
    tamper: 'docker stop web; docker network disconnect front web',
    moved: ['networks', 'state'],
  },
  {
    ...docker,
    name: 'container of Docker, previously another container that starts at boot',
    prepare: `${dockerUp}docker run --detach --name web --network back --restart always localhost/app:2 /bin/sh -c '${runs[2]}' > /dev/null`,
    desired: {
      container: {
        name: 'web',
        engine: 'docker',
        image: 'localhost/app:1',
        command: runs,
        restart: 'always',
        networks: ['front'],
        force: true,
      },
    },
    changed: { container: { name: 'web', engine: 'docker', ensure: 'absent' } },
    tamper: 'docker update --restart=no web',
    moved: ['restart'],
  },
];
