import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { parse } from 'yaml';
import { z } from 'zod';
import { HostFailure } from '../failure.ts';
import type { Runner } from '../processes/run-command.ts';
import { pathOfProgram } from '../processes/transient-scope.ts';
import { type Engine, type EngineRun, runEngine, secretPath, withoutHidden } from './engine.ts';

/**
 * Runs Docker Compose, as a plugin of Docker or as a program of its own. It also manages containers of Podman, whose
 * service has the API of Docker.
 */

/** Where distributions and Docker install the plugin, which also runs by itself. */
const plugins = ['/usr/local/libexec', '/usr/local/lib', '/usr/libexec', '/usr/lib'].map(
  (directory) => `${directory}/docker/cli-plugins/docker-compose`,
);

const podmanSocket = '/run/podman/podman.sock';

/** Milliseconds for one query. */
const queryMs = 60_000;
const maxOutput = 4 * 1024 * 1024;

/** Returns the path of Compose, of which the plugin is the newer one; null if it is not installed. */
export const pathOfCompose = (): string | null =>
  [...plugins, 'docker-compose'].map(pathOfProgram).find((path) => path !== null) ?? null;

/** Reports whether Podman's service is not available, which Compose needs. */
export const lacksService = (engine: Engine): boolean => engine === 'podman' && !existsSync(podmanSocket);

/** Returns the errors of Compose. The first version prints the reason below the first line. */
export function composeMessage(output: string, hidden: readonly string[] = []): string {
  const lines = withoutHidden(output, hidden)
    .replaceAll(secretPath, 'compose.yaml')
    .split('\n')
    .map((line) => line.replace(/^time="[^"]*" level=\w+ msg=/, '').trim())
    .filter((line) => line !== '');
  const first = lines.findIndex((line) => /^error\b/i.test(line));
  const shown = first === -1 ? lines.slice(-1) : lines.slice(first);
  return [...new Set(shown.map((line) => line.replace(/^error:\s*/i, '')))]
    .join(' ')
    .replaceAll(/[\x00-\x1f\x7f]/g, ' ')
    .slice(0, 800);
}

export interface ComposeProject {
  engine: Engine;
  name: string;
  /** Directory to which the paths in the Compose file are relative. */
  directory: string;
  /** The Compose file: its path, or its content. */
  file: { path: string } | { text: string };
  profiles: readonly string[];
  /** Values of variables, which may be secret. */
  variables: Readonly<Record<string, string>>;
}

/** @throws HostFailure with the message of Compose, without hidden texts */
export async function runCompose(
  project: ComposeProject,
  run: Omit<EngineRun, 'secret' | 'environment' | 'script' | 'messageIn'>,
  runner: Runner,
): Promise<string> {
  const program = pathOfCompose();
  if (program === null) throw new HostFailure(`cannot ${run.doing}: docker-compose is not installed on this machine`);
  const { engine, name, directory, file, profiles, variables } = project;
  const isText = 'text' in file;
  return runEngine(
    program,
    {
      ...run,
      messageIn: composeMessage,
      args: [
        `--project-name=${name}`,
        `--project-directory=${directory}`,
        `--file=${isText ? secretPath : file.path}`,
        ...profiles.map((profile) => `--profile=${profile}`),
        ...run.args,
      ],
      secret: isText ? file.text : '',
      environment: {
        ...variables,
        ...(engine === 'podman' ? { DOCKER_HOST: `unix://${podmanSocket}` } : {}),
        COMPOSE_ANSI: 'never',
        COMPOSE_IGNORE_ORPHANS: 'true',
      },
    },
    runner,
  );
}

/** A service as Compose reads it. */
export interface WantedService {
  name: string;
  /** Hash of the definition as Compose prints it. */
  hash: string;
  /** Hash of the definition with the environment and the labels, whose files some versions of Compose do not hash. */
  digest: string;
  image: string;
  /** Number of containers. */
  count: number;
}

const count = z
  .union([
    z.number(),
    z
      .string()
      .regex(/^\d{1,4}$/)
      .transform(Number),
  ])
  .nullish();
const configShape = z.object({
  services: z.record(
    z.string(),
    z.object({
      image: z.string().max(1000),
      scale: count,
      deploy: z.object({ replicas: count }).nullish(),
      environment: z.unknown().optional(),
      labels: z.unknown().optional(),
    }),
  ),
});

/**
 * Returns the services of the project that are enabled.
 * @throws HostFailure with the message of Compose if it refuses the file
 */
export async function wantedServices(
  project: ComposeProject,
  options: Pick<EngineRun, 'hidden' | 'warn'>,
  runner: Runner,
): Promise<WantedService[]> {
  const doing = `read the services of the project ${project.name}`;
  const ask = (args: readonly string[]) =>
    runCompose(project, { ...options, doing, args, timeLimit: queryMs, outputCap: maxOutput }, runner);
  return servicesOf(await ask(['config', '--hash=*']), await ask(['config']));
}

/**
 * Combines the two outputs of Compose.
 * @param hashes lines with a name and a hash
 * @param config the file in canonical form
 * @throws HostFailure if an output is not understood
 */
export function servicesOf(hashes: string, config: string): WantedService[] {
  const fault = new HostFailure('the services that Compose printed are not understood');
  let value: unknown;
  try {
    value = parse(config, { maxAliasCount: 100, logLevel: 'silent' });
  } catch {
    throw fault;
  }
  const read = configShape.safeParse(value);
  if (!read.success) throw fault;
  const lines = hashes.split('\n').filter((line) => line.trim() !== '');
  return lines
    .map((line): WantedService => {
      const [, name = '', hash = ''] = /^([A-Za-z0-9._-]{1,100}) ([0-9a-f]{64})$/.exec(line.trim()) ?? [];
      const service = Object.hasOwn(read.data.services, name) ? read.data.services[name] : undefined;
      if (service === undefined) throw fault;
      const { image, scale, deploy, environment = null, labels = null } = service;
      const digest = createHash('sha256')
        .update(JSON.stringify([hash, environment, labels]))
        .digest('hex');
      return { name, hash, digest, image: fullReference(image), count: scale ?? deploy?.replicas ?? 1 };
    })
    .sort((one, other) => (one.name < other.name ? -1 : 1));
}

/** Returns an image reference with the registry and the tag that Docker assumes, or with the digest alone. */
export function fullReference(image: string): string {
  const [first = '', ...rest] = image.split('/');
  const hasRegistry = rest.length > 0 && (/[.:]/.test(first) || first === 'localhost');
  const named = hasRegistry ? image : `docker.io/${rest.length === 0 ? 'library/' : ''}${image}`;
  if (named.includes('@')) return named.replace(/:[^/:@]*(?=@)/, '');
  return /:[^/]*$/.test(named) ? named : `${named}:latest`;
}

/** Reports whether this is the first version of Compose, which lacks options of the later ones. */
export async function isFirstVersion(options: Pick<EngineRun, 'warn'>, runner: Runner): Promise<boolean> {
  const program = pathOfCompose();
  if (program === null) throw new HostFailure('docker-compose is not installed on this machine');
  const doing = 'read the version of Compose';
  const output = await runEngine(
    program,
    { ...options, doing, args: ['version', '--short'], timeLimit: queryMs },
    runner,
  );
  return /^v?1\./.test(output.trim());
}
