import { boolean, choice, formatted, integer, list, map, text } from '../field.ts';
import * as format from '../format.ts';
import { defineKind, ensure } from '../kind.ts';

const byPattern =
  (pattern: RegExp, fault: string): format.Check =>
  (value) =>
    pattern.test(value) ? undefined : fault;

/** Suffixes of containers that exist only while the agent replaces a container, or that the agent keeps. */
const containerName: format.Check = format.allOf(
  byPattern(
    /^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$/,
    'must be a name of up to 100 letters, digits, "_", "." and "-", beginning with a letter or digit',
  ),
  (name) =>
    /-muster-(new|old|before)$/.test(name)
      ? 'must not end with -muster-new, -muster-old, or -muster-before'
      : undefined,
);

const part = '[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*';
const imagePattern = new RegExp(
  `^(?:localhost|(?=[^/]*[.:])[A-Za-z0-9][A-Za-z0-9.-]*)(?::[0-9]{1,5})?(?:/${part})+(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}|@sha256:[0-9a-f]{64})$`,
);

/**
 * Without a registry, the engine would search the registries in its settings. Without a tag, the image would change.
 */
const imageReference: format.Check = format.allOf(
  format.maxLength(500),
  byPattern(
    imagePattern,
    'must be an image with its registry and either a tag or a digest, such as docker.io/library/nginx:1.27 or ghcr.io/example/app@sha256:…',
  ),
);

const isPort = (digits: string): boolean => /^[1-9]\d{0,4}$/.test(digits) && Number(digits) <= 65_535;

const publishedPort: format.Check = (value) => {
  const [, address, host = '', inside = ''] =
    /^(?:(\d{1,3}(?:\.\d{1,3}){3}|\[[0-9A-Fa-f:.]{2,45}\]):)?(\d+):(\d+)(?:\/(?:tcp|udp))?$/.exec(value) ?? [];
  const isAddress = address === undefined || address.startsWith('[') || address.split('.').every((byte) => +byte < 256);
  return isAddress && isPort(host) && isPort(inside)
    ? undefined
    : 'must be a port of the machine and one of the container, such as "8080:80", "127.0.0.1:8080:80" or "53:53/udp"';
};

const volume: format.Check = (value) => {
  const fault =
    'must be a directory of the machine or the name of a volume, and a path in the container, such as /srv/data:/data or data:/data:ro';
  const [source = '', target = '', options, ...rest] = value.split(':');
  if (rest.length > 0 || /[,\n\r\0]/.test(source + target)) return fault;
  if (!/^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$/.test(source) && format.unixDirectory(source) !== undefined) return fault;
  if (format.unixDirectory(target) !== undefined || target === '/') return fault;
  return options === undefined || /^[A-Za-z]+(,[A-Za-z]+)*$/.test(options) ? undefined : fault;
};

const plain = format.allOf(format.noNul, format.maxLength(10_000));
const lineOfText = format.allOf(format.notEmpty, format.oneLine, format.maxLength(1000));

const label: format.Check = format.allOf(
  byPattern(
    /^[A-Za-z0-9][A-Za-z0-9_./-]{0,127}$/,
    'must be the name of a label: letters, digits, "_", ".", "/" and "-"',
  ),
  (name) => (name.startsWith('muster.') ? 'must not begin with muster., which the agent uses' : undefined),
);

const capability = formatted(
  'A capability, such as NET_ADMIN; ALL for all',
  byPattern(/^(?!CAP_)[A-Z][A-Z_]{2,39}$/, 'must be a capability in upper case, without CAP_, such as NET_ADMIN'),
);

const duration = (what: string) =>
  formatted(what, byPattern(/^[1-9]\d{0,5}(ms|s|m|h)$/, 'must be a number and a unit, such as 500ms, 30s, 5m, or 1h'));

export const containerKind = {
  container: defineKind({
    description: 'A container of Podman or Docker',
    platforms: ['linux'],
    example:
      'name: web\nimage: docker.io/library/nginx:1.27.4\nports: ["127.0.0.1:8080:80"]\nvolumes: ["/srv/www:/usr/share/nginx/html:ro"]\nenvironment: { NGINX_HOST: example.org }\nrestart: always\nread_only: false',
    required: { name: formatted('Name of the container', containerName) },
    optional: {
      image: formatted('Image with its registry, and a tag or a digest', imageReference),
      pull: choice(
        'When the image is pulled: if it is missing, also if its tag names another image in the registry, or never',
        ['missing', 'always', 'never'],
        'missing',
      ),
      command: list('Command and arguments; default: those of the image', formatted('An argument', plain)),
      environment: map(
        'Environment variables; those of the image stay',
        format.environmentName,
        text('A value, on one line', format.allOf(format.oneLine, format.maxLength(30_000))),
      ),
      ports: list('Ports of the machine that are forwarded to the container', formatted('A port', publishedPort)),
      volumes: list('Directories and volumes in the container', formatted('A directory or volume', volume)),
      networks: list(
        'Networks that the container joins; or only host or none',
        formatted(
          'A network',
          byPattern(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$/, 'must be the name of a network, host, or none'),
        ),
        { atLeast: 1 },
      ),
      user: formatted(
        'User in the container, such as 1000:1000; default: the user of the image',
        byPattern(
          /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,63})?$/,
          'must be USER or USER:GROUP',
        ),
      ),
      restart: formatted(
        'When the engine restarts the container: no, always, unless-stopped, on-failure, or on-failure:N for at most N times',
        byPattern(
          /^(no|always|unless-stopped|on-failure(:[1-9]\d{0,3})?)$/,
          'must be "no", always, unless-stopped, on-failure, or on-failure:N',
        ),
      ),
      labels: map('Labels', label, formatted('A value', format.allOf(format.oneLine, format.maxLength(4000)))),
      health_command: formatted('Shell command in the container that succeeds if it is healthy', lineOfText),
      health_interval: duration('Time between two health checks'),
      health_timeout: duration('Time after which a health check fails'),
      health_retries: integer('Number of failed checks after which the container is unhealthy', 1, 1000),
      health_start_period: duration('Time after the start during which failed checks do not count'),
      memory: formatted(
        'Maximum memory, such as 512M or 2G',
        byPattern(/^[1-9]\d{0,5}[MG]$/, 'must be a number with M or G, such as 512M'),
      ),
      cpus: formatted(
        'Maximum CPU time, as a number of CPUs',
        byPattern(/^(?!0+(\.0+)?$)\d{1,4}(\.\d{1,2})?$/, 'must be a number of CPUs in quotes, such as "1.5"'),
      ),
      read_only: boolean('Whether the root file system of the container is read-only'),
      cap_add: list('Capabilities in addition to the defaults of the engine', capability),
      cap_drop: list('Capabilities that the container does not get', capability),
      state: choice('Whether the container runs', ['running', 'stopped'], 'running'),
      engine: choice('Program that manages the container', ['podman', 'docker'], 'podman'),
      registry_user: formatted('User for the registry', lineOfText),
      registry_password: text(
        'Password or token for the registry',
        format.allOf(format.notEmpty, format.oneLine, format.maxLength(4000)),
      ),
      remove_image: boolean('Whether removal also removes the image, unless it existed before'),
      remove_volumes: boolean('Whether removal also removes the named volumes that were created for the container'),
      force: boolean('Whether a container that Muster did not create is stopped and replaced; removal restores it'),
      ensure,
    },
    identifiedBy: ({ engine }) => (engine === 'docker' ? ['name', 'engine'] : ['name']),
    identity: ({ name, engine }) => (engine === 'docker' ? `docker/${name}` : String(name)),
    triggers: ['restart_on'],
    presentNeeds: ['image'],
    needs: {
      registry_user: 'registry_password',
      registry_password: 'registry_user',
      health_interval: 'health_command',
      health_timeout: 'health_command',
      health_retries: 'health_command',
      health_start_period: 'health_command',
    },
    sensitive: ['registry_password'],
  }),
};
