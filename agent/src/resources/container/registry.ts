import { type Engine, type EngineRun, runEngine, secretPath } from '../../host/containers/engine.ts';
import { bareId } from '../../host/containers/inspected.ts';
import { HostFailure } from '../../host/failure.ts';
import { proxyVariables } from '../../host/network/proxy-variables.ts';
import { pathOfProgram } from '../../host/processes/transient-scope.ts';
import type { Machine } from '../provider/provider.ts';
import { type Declared, engineOf } from './definition.ts';

/** Queries and pulls from the registry of an image. */

const queryMs = 120_000;

/** Returns the texts that no message may contain. */
export const hiddenIn = ({ body }: Declared): string[] => [
  ...Object.values(body.environment ?? {}),
  ...(body.registry_password == null ? [] : [body.registry_password, credentialsOf(body)]),
];

const credentialsOf = ({ registry_user: user, registry_password: password }: Declared['body']): string =>
  Buffer.from(`${user ?? ''}:${password ?? ''}`).toString('base64');

/** Returns the credentials in the format of containers-auth.json(5), which Docker reads too. */
export function authenticationFile(body: Declared['body'], engine: Engine): string {
  const [host = ''] = (body.image ?? '').split('/');
  const registry = host === 'docker.io' && engine === 'docker' ? 'https://index.docker.io/v1/' : host;
  return JSON.stringify({ auths: { [registry]: { auth: credentialsOf(body) } } });
}

/**
 * Docker reads credentials only from a configuration directory. This one contains only a symbolic link to the unnamed
 * secret file.
 */
const dockerPull = `
directory=/run/muster-registry-login
rm -rf -- "$directory"
mkdir -m 700 -- "$directory" || exit 1
trap 'rm -rf -- "$directory"' EXIT
ln -s ${secretPath} "$directory/config.json" || exit 1
docker --config "$directory" "$@"`;

/** @throws HostFailure with the message of the engine */
export async function pullImage(resource: Declared, machine: Machine): Promise<void> {
  const { image, registry_password: password } = resource.body;
  const engine = engineOf(resource);
  const hasLogin = password != null;
  const login = hasLogin && engine === 'podman' ? [`--authfile=${secretPath}`] : [];
  await run(
    engine,
    resource,
    {
      args: ['pull', '--quiet', ...login, '--', image ?? ''],
      ...(hasLogin && engine === 'docker' ? { script: dockerPull } : {}),
      doing: `pull ${image}`,
      timeLimit: machine.limits.packageMs,
    },
    machine,
  );
}

const run = (
  program: Engine | 'skopeo',
  resource: Declared,
  options: Pick<EngineRun, 'args' | 'script' | 'doing' | 'timeLimit'>,
  machine: Machine,
): Promise<string> =>
  runEngine(
    program,
    {
      ...options,
      secret: resource.body.registry_password == null ? '' : authenticationFile(resource.body, engineOf(resource)),
      environment: proxyVariables(machine.environment),
      hidden: hiddenIn(resource),
      warn: machine.warn,
    },
    machine,
  );

/** Reports whether the program that queries registries is missing. Podman reads only some types of manifests. */
export const isSkopeoMissing = (): boolean => pathOfProgram('skopeo') === null;

/** Architectures by the names that Go uses. */
const architectures: Readonly<Record<string, string>> = { x64: 'amd64', ia32: '386', ppc64: 'ppc64le' };

/**
 * Returns the ID that the image has after a pull.
 * @throws HostFailure if the registry does not have it or does not respond
 */
export async function registryImage(resource: Declared, machine: Machine): Promise<string> {
  const { image = '' } = resource.body;
  const ask = async (reference: string) => {
    const login = resource.body.registry_password == null ? [] : [`--authfile=${secretPath}`];
    const args = ['inspect', '--raw', ...login, `docker://${reference}`];
    const output = await run(
      'skopeo',
      resource,
      { args, doing: `read ${reference} in its registry`, timeLimit: queryMs },
      machine,
    );
    return manifestOf(output, reference);
  };
  const first = await ask(image ?? '');
  if ('config' in first) return first.config;
  const { members } = first;
  const architecture = architectures[process.arch] ?? process.arch;
  const armVersion = Number((process.config.variables as { arm_version?: unknown }).arm_version ?? 7);
  const member = memberFor(members, architecture, armVersion);
  if (member === null) throw new HostFailure(`${image} has no image for ${architecture}`);
  const repository = (image ?? '').replace(/(:[^/:]*|@[^@]*)$/, '');
  const second = await ask(`${repository}@${member.digest}`);
  if (!('config' in second)) throw new HostFailure(`${image} is a list of lists of images`);
  return second.config;
}

interface Member {
  digest: string;
  os: string;
  architecture: string;
  /** Such as `v7`; empty if there is none. */
  variant: string;
}

interface Members {
  members: Member[];
}

/**
 * Returns the image for this machine. An ARM machine can also run images for earlier ARM versions; the latest of these
 * is used.
 */
export function memberFor(members: readonly Member[], architecture: string, armVersion: number): Member | null {
  const suitable = members.filter((one) => one.os === 'linux' && one.architecture === architecture);
  if (architecture !== 'arm') return suitable[0] ?? null;
  const versionOf = ({ variant }: Member) => (variant === '' ? 0 : Number(variant.slice(1)));
  const runs = suitable.filter((one) => versionOf(one) <= armVersion);
  return runs.sort((one, other) => versionOf(other) - versionOf(one))[0] ?? null;
}

/** Parses a manifest, which the registry can choose freely. */
export function manifestOf(text: string, reference: string): { config: string } | Members {
  const fault = new HostFailure(`the registry's manifest of ${reference} is not understood`);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw fault;
  }
  const { config, manifests } = (value ?? {}) as { config?: { digest?: unknown }; manifests?: unknown };
  const isDigest = (digest: unknown): digest is string =>
    typeof digest === 'string' && /^sha256:[0-9a-f]{64}$/.test(digest);
  if (isDigest(config?.digest)) return { config: bareId(config.digest) };
  if (!Array.isArray(manifests)) throw fault;
  return {
    members: manifests.flatMap(
      (one: { digest?: unknown; platform?: Record<'os' | 'architecture' | 'variant', unknown> } | null) =>
        isDigest(one?.digest)
          ? [
              {
                digest: one.digest,
                os: String(one.platform?.os),
                architecture: String(one.platform?.architecture),
                variant: String(one.platform?.variant ?? ''),
              },
            ]
          : [],
    ),
  };
}
