import { dirname, resolve } from 'node:path';
import {
  composeFileFault,
  composePathFault,
  composeReferences,
  composeVariableName,
  maximumComposeBytes,
  type ResolvedResource,
} from '@muster/protocol/module';
import type { ComposeProject } from '../../host/containers/compose-program.ts';
import type { Engine } from '../../host/containers/engine.ts';
import { HostFailure } from '../../host/failure.ts';
import { checkPath } from '../../host/files/path-walk.ts';

export type Declared = ResolvedResource<'compose'>;

/** Labels with which Compose marks what belongs to a project. */
export const labels = {
  project: 'com.docker.compose.project',
  service: 'com.docker.compose.service',
  hash: 'com.docker.compose.config-hash',
  /** The first version of Compose writes paths relative to `directory`. */
  files: 'com.docker.compose.project.config_files',
  directory: 'com.docker.compose.project.working_dir',
  /** `True` for a container of `docker compose run`, which is not part of a service. */
  isOneOff: 'com.docker.compose.oneoff',
} as const;

export const engineOf = ({ body }: Declared): Engine => body.engine ?? 'podman';

export const isAbsent = ({ body }: Declared): boolean => body.ensure === 'absent';

/** Returns the Compose file as a separate resource, so that it is observed, written, and restored like a declared file. */
export function fileOf(resource: Declared): ResolvedResource<'file-unix'> {
  const { path, content, source } = resource.body;
  const body = isAbsent(resource)
    ? { path, ensure: 'absent' as const }
    : {
        ...{ path, owner: 'root', group: 'root' },
        ...(content != null ? { content } : source == null ? {} : { source }),
        mode: '0644',
      };
  return { ...resource, type: 'file-unix', identity: path, body };
}

/** Returns the project with the file at its path, or with this text in place of the file. */
export function projectOf(resource: Declared, text: string | null): ComposeProject {
  const { name, path, profiles, environment } = resource.body;
  return {
    ...{ engine: engineOf(resource), name, directory: dirname(path) },
    file: text === null ? { path } : { text },
    profiles: profiles ?? [],
    variables: environment ?? {},
  };
}

/** Returns the texts that no message may contain. */
export const hiddenIn = ({ body }: Declared): string[] => [
  ...Object.values(body.environment ?? {}),
  ...(body.registry_password == null ? [] : [body.registry_password]),
];

/** @throws HostFailure if Compose cannot use the declaration */
export function checkDeclared(resource: Declared): void {
  const { path, content, environment } = resource.body;
  // The engine shows parts of the file, such as images and commands, in arguments and messages.
  if (resource.sensitive_fields.includes('content'))
    throw new HostFailure(
      `the Compose file ${path} must not contain a secret: write a variable such as \${TOKEN} in its place, and declare the value in \`environment\``,
    );
  checkPath(path);
  const fault = composePathFault(path);
  if (fault !== undefined) throw new HostFailure(`the path ${JSON.stringify(path.slice(0, 60))} ${fault}`);
  if (resource.source !== undefined && resource.source.size > maximumComposeBytes)
    throw new HostFailure(`the Compose file ${path} must be at most 256 KiB long`);
  if (content != null) checkComposeFile(resource, content);
  for (const [name, value] of Object.entries(environment ?? {}))
    if (composeVariableName(name) !== undefined || value.includes('\0'))
      throw new HostFailure(`the variable ${JSON.stringify(name)} cannot be passed to Compose`);
}

/** @throws HostFailure if Compose cannot use the file, or would show a secret in an argument */
export function checkComposeFile({ body: { path }, sensitive_fields }: Declared, text: string): void {
  const fault = composeFileFault(text);
  if (fault !== undefined) throw new HostFailure(`the Compose file ${path} ${fault}`);
  if (!sensitive_fields.includes('environment')) return;
  const [named] = composeReferences(text).withVariables;
  if (named !== undefined)
    throw new HostFailure(
      `the Compose file ${path} must not have a variable in the ${named}, because \`environment\` contains a secret, and every user can read this name: write the name, or use a template`,
    );
}

/** Returns the path of the file with values for variables, which Compose reads without being told to. */
export const dotenvOf = (path: string): string => `${dirname(path)}/.env`;

/** Returns the paths of the files from which Compose reads parts of the definitions, besides the Compose file. */
export const inputsOf = ({ body: { path } }: Declared, text: string): string[] => [
  ...new Set([dotenvOf(path), ...composeReferences(text).files.map((file) => resolve(dirname(path), file))]),
];

/** Returns an image as a resource, so that it is pulled like the image of a declared container. */
export function imageOf(resource: Declared, image: string): ResolvedResource<'container'> {
  const { name, registry, registry_user, registry_password, engine } = resource.body;
  const isLogin = registry != null && image.startsWith(`${registry}/`);
  const login =
    isLogin && registry_user != null && registry_password != null ? { registry_user, registry_password } : {};
  const body = { name, image, ...login, ...(engine == null ? {} : { engine }) };
  return { ...resource, type: 'container', identity: name, body };
}
