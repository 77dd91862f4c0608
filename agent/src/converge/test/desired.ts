import { hash } from 'node:crypto';
import type { ResolvedResource, ResourceBodies, ResourceType } from '@muster/protocol/module';
import type { OperationMessage } from '@muster/protocol/wire';

/** Builds desired states and operations as an orchestrator sends them, for tests and benchmarks. */

type Links = Partial<Pick<ResolvedResource, 'depends_on' | 'rerun_on' | 'sensitive_fields' | 'module' | 'id'>>;

function resource<T extends ResourceType>(
  type: T,
  key: string,
  identity: string,
  body: ResourceBodies[T],
  links: Links = {},
): ResolvedResource {
  const { rerun_on = [], depends_on = [], sensitive_fields = [], module = 'site', id = null } = links;
  return {
    key,
    module,
    id,
    name: null,
    type,
    identity,
    body,
    depends_on: [...new Set([...depends_on, ...rerun_on])],
    reload_on: [],
    restart_on: [],
    rerun_on,
    sensitive_fields,
  };
}

export const file = (path: string, body: Partial<ResourceBodies['file-unix']> = {}, links?: Links): ResolvedResource =>
  resource('file-unix', `path:${path}`, path, { path, ...body }, links);

/** Source content by hash. Test agents receive it as if an orchestrator had sent it. */
export const sourceContents = new Map<string, Buffer>();

/** Builds a file whose content comes from a file next to the module. */
export function sourced(
  path: string,
  content: string | Buffer,
  body: Partial<ResourceBodies['file-unix']> = {},
): ResolvedResource {
  const bytes = Buffer.from(content as string);
  const sha256 = hash('sha256', bytes, 'hex');
  sourceContents.set(sha256, bytes);
  return { ...file(path, { source: 'files/f', ...body }), source: { sha256, size: bytes.length } };
}

export const directory = (
  path: string,
  body: Partial<ResourceBodies['directory-unix']> = {},
  links?: Links,
): ResolvedResource => resource('directory-unix', `path:${path}`, path, { path, ...body }, links);

/** Builds a line in a file, with the identity that the orchestrator assigns to it. */
export const line = (
  path: string,
  text: string,
  body: Partial<ResourceBodies['line-unix']> = {},
  links?: Links,
): ResolvedResource => {
  const identity = `${path}#${body.match ?? text}`;
  return resource('line-unix', `line-unix:${identity}`, identity, { path, line: text, ...body }, links);
};

export const block = (
  path: string,
  marker: string,
  body: Partial<ResourceBodies['block-unix']> = {},
  links?: Links,
): ResolvedResource =>
  resource('block-unix', `block-unix:${path}#${marker}`, `${path}#${marker}`, { path, marker, ...body }, links);

export const ini = (
  path: string,
  section: string | null,
  key: string,
  body: Partial<ResourceBodies['ini-unix']> = {},
  links?: Links,
): ResolvedResource => {
  const identity = `${path}%23${section ?? ''}#${key}`;
  const place = section === null ? { path, key } : { path, section, key };
  return resource('ini-unix', `ini-unix:${identity}`, identity, { ...place, ...body }, links);
};

/** A value in a JSON, YAML, or TOML file. */
export const structured = (
  type: 'json-unix' | 'yaml-unix' | 'toml-unix',
  path: string,
  pointer: string,
  body: Partial<ResourceBodies['json-unix']>,
  links?: Links,
): ResolvedResource => {
  const identity = `${path}#${pointer}`;
  return resource(type, `${type}:${identity}`, identity, { path, pointer, ...body }, links);
};

export const script = (
  name: string,
  body: Omit<ResourceBodies['script'], 'program'> & Partial<ResourceBodies['script']>,
  links?: Links,
): ResolvedResource => resource('script', `script:${name}`, name, { program: 'sh', ...body }, { id: name, ...links });

/** Builds a directory from an archive next to the module. */
export function unpacked(
  path: string,
  content: Buffer,
  body: Partial<ResourceBodies['archive']> = {},
): ResolvedResource {
  const sha256 = hash('sha256', content, 'hex');
  sourceContents.set(sha256, content);
  const declared = resource('archive', `path:${path}`, path, { path, source: 'files/a.tar.gz', ...body });
  return { ...declared, source: { sha256, size: content.length } };
}

export const download = (
  path: string,
  body: Omit<ResourceBodies['download'], 'path'>,
  links?: Links,
): ResolvedResource => resource('download', `path:${path}`, path, { path, ...body }, links);

export const certificate = (
  path: string,
  body: Omit<ResourceBodies['certificate-file'], 'path'>,
  links?: Links,
): ResolvedResource => resource('certificate-file', `path:${path}`, path, { path, ...body }, links);

export const acmeCertificate = (
  path: string,
  body: Partial<ResourceBodies['certificate-acme']> & Pick<ResourceBodies['certificate-acme'], 'directory'>,
): ResolvedResource =>
  resource('certificate-acme', `certificate-acme:${path}`, path, {
    ...{ path, domains: ['www.example.org'], agree_terms: true },
    ...body,
  });

/** Builds a package from a .deb file next to the module. */
export function packageFrom(content: Buffer, body: ResourceBodies['package-apt']): ResolvedResource {
  const sha256 = hash('sha256', content, 'hex');
  sourceContents.set(sha256, content);
  return { ...aptPackage({ source: 'files/a.deb', ...body }), source: { sha256, size: content.length } };
}

export const aptPackage = (body: ResourceBodies['package-apt']): ResolvedResource =>
  resource('package-apt', `package-apt:${body.name}`, body.name, body);

let operations = 0;

/** Builds an operation with a unique ID. */
export function operation(
  kind: OperationMessage['kind'],
  resources: ResolvedResource[] = [],
  rest: Partial<OperationMessage> = {},
): OperationMessage {
  return {
    type: 'operation',
    operation_id: `01TEST${String(++operations).padStart(20, '0')}`,
    kind,
    modules: [...new Set(resources.map(({ module }) => module))],
    resources,
    keep_modules: [],
    snapshot_operation_id: null,
    ...rest,
  };
}

/** Builds a working copy of a Git repository. */
export const workingCopy = (path: string, body: Omit<ResourceBodies['git'], 'path'>, links?: Links): ResolvedResource =>
  resource('git', `path:${path}`, path, { path, ...body }, links);
