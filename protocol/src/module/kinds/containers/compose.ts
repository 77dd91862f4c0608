import { filePathFault } from '../../files/module-file.ts';
import { boolean, choice, formatted, integer, list, map, text } from '../field.ts';
import * as format from '../format.ts';
import { defineKind, ensure } from '../kind.ts';
import { composeFileFault } from './compose-file.ts';

/** Variables that the shell, Compose, and their libraries read themselves, so that a module would change how they run. */
const reserved = new RegExp(
  `^(${[
    ...['PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'LANG', 'LANGUAGE', 'LC_.*', 'TMPDIR', 'TEMP', 'TMP', 'XDG_.*'],
    ...['_', 'IFS', 'PWD', 'OLDPWD', 'SHLVL', 'SHELLOPTS', 'OPTIND', 'PPID', 'PS[0-9]', 'BASH.*'],
    ...['LD_.*', 'GLIBC_.*', 'GCONV_PATH', 'MALLOC_.*', 'RES_OPTIONS', 'LOCALDOMAIN', 'HOSTALIASES'],
    ...['PYTHON.*', 'GO(DEBUG|GC|MAXPROCS|MEMLIMIT|TRACEBACK|RACE|COVERDIR)', 'OTEL_.*', '(https?|ftp|all|no)_proxy'],
    ...['SSL_CERT_.*', 'SSLKEYLOGFILE', 'OPENSSL_.*', 'REQUESTS_CA_BUNDLE', 'CURL_CA_BUNDLE'],
    ...['DOCKER_.*', 'COMPOSE_.*', 'BUILDX_.*', 'BUILDKIT_.*'],
  ].join('|')})$`,
  'i',
);

export const composeVariableName: format.Check = format.allOf(format.environmentName, (name) =>
  reserved.test(name)
    ? 'must not be a variable that Compose itself reads, such as PATH, DOCKER_HOST, or COMPOSE_FILE'
    : undefined,
);

/** Maximum number of UTF-16 code units of the path of a Compose file. */
export const maximumComposePath = 1000;

/** Compose joins the paths of several files with commas. */
export const composePathFault: format.Check = (path) =>
  path.includes(',')
    ? 'must not contain commas'
    : path.length > maximumComposePath
      ? `must be at most ${maximumComposePath} characters long`
      : undefined;

const serviceName = formatted(
  'A service',
  format.byPattern(
    /^[A-Za-z0-9._-]{1,100}$/,
    'must be the name of a service: up to 100 letters, digits, "_", "." and "-"',
  ),
);

export const composeKind = {
  compose: defineKind({
    description: 'A Compose project: the containers, networks, and volumes of a Compose file',
    platforms: ['linux'],
    example:
      'name: shop\npath: /srv/shop/compose.yaml\ncontent: |\n  services:\n    web:\n      image: docker.io/library/nginx:1.27.4\n      restart: always\n      ports: ["127.0.0.1:8080:80"]\n      environment: { TOKEN: "${TOKEN}" }\nenvironment: { TOKEN: "an example" }\nengine: docker',
    required: {
      name: formatted(
        'Name of the project',
        format.byPattern(
          /^[a-z0-9][a-z0-9_-]{0,62}$/,
          'must be a name of up to 63 lower-case letters, digits, "_" and "-", beginning with a letter or digit',
        ),
      ),
      path: formatted(
        'Absolute path of the Compose file; the paths in the file are relative to its directory',
        format.allOf(format.unixFile, composePathFault),
        { pattern: '^/' },
      ),
    },
    optional: {
      content: text('The whole Compose file', composeFileFault),
      source: formatted(
        'Path of a file in the module’s folder that has the Compose file',
        format.allOf(format.notEmpty, (path) => filePathFault(path)),
      ),
      environment: map(
        'Values for the variables of the Compose file, such as ${TOKEN}',
        composeVariableName,
        text('A value', format.allOf(format.noNul, format.maxLength(30_000))),
      ),
      profiles: list(
        'Profiles whose services run in addition to those without a profile',
        formatted(
          'A profile',
          format.byPattern(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$/, 'must be the name of a profile, such as debug'),
        ),
      ),
      jobs: list('Services that end by themselves; all others must keep running', serviceName),
      pull: choice('When images are pulled: if they are missing, or never', ['missing', 'never'], 'missing'),
      wait: integer(
        'Maximum number of seconds until all services run, and are healthy if they have a health check; default: 60',
        1,
        3600,
      ),
      engine: choice('Program that manages the containers', ['podman', 'docker'], 'podman'),
      registry: formatted(
        'Registry for which registry_user and registry_password are, such as ghcr.io',
        format.byPattern(
          /^[A-Za-z0-9][A-Za-z0-9.-]{0,252}(:[0-9]{1,5})?$/,
          'must be the host of a registry, such as ghcr.io',
        ),
      ),
      registry_user: formatted(
        'User for the registry',
        format.allOf(format.notEmpty, format.oneLine, format.maxLength(1000)),
      ),
      registry_password: text(
        'Password or token for the registry',
        format.allOf(format.notEmpty, format.oneLine, format.maxLength(4000)),
      ),
      remove_images: boolean('Whether removal also removes the images that did not exist before'),
      remove_volumes: boolean('Whether removal also removes the volumes of the project that did not exist before'),
      force: boolean(
        'Whether a Compose file that Muster did not write, and a project that was started with it, are taken over',
      ),
      ensure,
    },
    identifiedBy: ({ engine }) => (engine === 'docker' ? ['name', 'engine'] : ['name']),
    identity: ({ name, engine }) => (engine === 'docker' ? `docker/${name}` : String(name)),
    writes: ({ path }) => (typeof path === 'string' ? [path] : []),
    triggers: ['restart_on'],
    templated: true,
    sourced: 'file',
    exclusive: [['content', 'template', 'source']],
    oneOf: [['content', 'template', 'source']],
    needs: {
      registry: 'registry_user',
      registry_user: 'registry_password',
      registry_password: 'registry',
    },
    sensitive: ['registry_password'],
  }),
};
