import type { ResolvedResource, ResourceBodies, ResourceType } from '@muster/protocol/module';

/**
 * Checks whether a received body fits its type: its fields, and the kind of each value. A newer or hostile orchestrator
 * may send anything. A body that passes can be read by the provider's code, which checks the formats itself. The
 * protocol's schemas check the same and more, but need ten megabytes of memory that agents cannot spare. The compiler
 * keeps this table consistent with the protocol.
 */

type ShapeOf<V> = V extends string
  ? 'text'
  : V extends number
    ? 'integer'
    : V extends boolean
      ? 'boolean'
      : V extends readonly string[]
        ? 'list'
        : 'map';
/** A question mark marks optional fields. */
type Entry<B, F extends keyof B> = undefined extends B[F] ? `${ShapeOf<Exclude<B[F], undefined>>}?` : ShapeOf<B[F]>;
type Shapes<B> = { readonly [F in keyof B]-?: Entry<B, F> };
type Foreign = Extract<
  ResourceType,
  `${string}-windows` | 'service-launchd' | 'package-brew' | 'package-choco' | 'package-winget'
>;

const optionalText = 'text?';
const ensure = optionalText;
const packageShape = { name: 'text', version: 'text?', ensure } as const;

const shapes: { readonly [T in Exclude<ResourceType, Foreign>]: Shapes<ResourceBodies[T]> } = {
  'package-apt': packageShape,
  'package-dnf': packageShape,
  'file-unix': {
    path: 'text',
    content: 'text?',
    content_base64: 'text?',
    symlink: 'text?',
    owner: 'text?',
    group: 'text?',
    mode: 'text?',
    validate: 'text?',
    ensure,
  },
  'directory-unix': { path: 'text', owner: 'text?', group: 'text?', mode: 'text?', ensure },
  'line-unix': {
    path: 'text',
    line: 'text',
    match: 'text?',
    backrefs: 'boolean?',
    before: 'text?',
    after: 'text?',
    validate: 'text?',
    ensure,
  },
  'block-unix': { path: 'text', marker: 'text', content: 'text?', ensure },
  'user-unix': {
    name: 'text',
    uid: 'integer?',
    primary_group: 'text?',
    additional_groups: 'list?',
    home: 'text?',
    shell: 'text?',
    system: 'boolean?',
    ensure,
  },
  'group-unix': { name: 'text', gid: 'integer?', ensure },
  'ssh-authorized-key': { user: 'text', key: 'text', comment: 'text?', ensure },
  'service-systemd': {
    name: 'text',
    enabled: 'boolean?',
    running: 'boolean?',
    exec_start: 'text?',
    type: 'text?',
    description: 'text?',
    user: 'text?',
    group: 'text?',
    working_directory: 'text?',
    environment: 'map?',
    dependencies: 'list?',
    restart: 'text?',
    ensure,
  },
  'service-openrc': { name: 'text', enabled: 'boolean?', running: 'boolean?', runlevel: 'text?', ensure },
  script: { program: 'text', apply: 'text', check: 'text?', undo: 'text?', manages: 'text?' },
  'cron-unix': { name: 'text', user: 'text', schedule: 'text', command: 'text', ensure },
  sysctl: { key: 'text', value: 'text', ensure },
  'apt-repository': {
    name: 'text',
    uris: 'list',
    suites: 'list',
    components: 'list?',
    signed_by: 'text?',
    ensure,
  },
  hostname: { name: 'text', ensure },
  timezone: { name: 'text', ensure },
};

const isText = (value: unknown): boolean => typeof value === 'string';
const kindsOfValue: Readonly<Record<string, { is(value: unknown): boolean; name: string }>> = {
  text: { is: isText, name: 'text' },
  integer: { is: Number.isSafeInteger, name: 'a whole number' },
  boolean: { is: (value) => typeof value === 'boolean', name: 'true or false' },
  list: { is: (value) => Array.isArray(value) && value.every(isText), name: 'a list of texts' },
  map: {
    is: (value) =>
      typeof value === 'object' && value !== null && !Array.isArray(value) && Object.values(value).every(isText),
    name: 'a mapping of names to texts',
  },
};

/** @returns the fault of a body, for people and without its values; null if it fits its type */
export function bodyFault({ type, body }: Pick<ResolvedResource, 'type' | 'body'>): string | null {
  if (!Object.hasOwn(shapes, type)) return null;
  const shape: Readonly<Record<string, string>> = shapes[type as keyof typeof shapes];
  const values = body as Readonly<Record<string, unknown>>;
  const faults: string[] = [];
  for (const name of Object.keys(values))
    if (!Object.hasOwn(shape, name)) faults.push(`\`${nameOf(name)}\` is not known`);
  for (const [name, entry] of Object.entries(shape)) {
    const value = Object.hasOwn(values, name) ? values[name] : undefined;
    const isOptional = entry.endsWith('?');
    if (value === undefined || value === null) {
      if (!isOptional) faults.push(`\`${name}\` is missing`);
      continue;
    }
    const wanted = kindsOfValue[isOptional ? entry.slice(0, -1) : entry];
    if (wanted?.is(value) !== true) faults.push(`\`${name}\` must be ${wanted?.name}`);
  }
  // Any other value would be treated as "present".
  if ('ensure' in values && isText(values.ensure) && values.ensure !== 'present' && values.ensure !== 'absent')
    faults.push('`ensure` must be present or absent');
  if (faults.length === 0) return null;
  const more = faults.length > 5 ? `; and ${faults.length - 5} more` : '';
  return `what the orchestrator sent is no ${type} that this agent knows: ${faults.slice(0, 5).join('; ')}${more}. Is the agent older than the orchestrator?`;
}

const nameOf = (name: string): string => JSON.stringify(name.slice(0, 64).toWellFormed()).slice(1, -1);
