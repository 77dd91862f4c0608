import type { ResourceBodies } from '@muster/protocol/module';

/** Pure functions that render units and drop-ins from the fields of a resource, and parse them. */

export type Body = ResourceBodies['service-systemd'];

export const unitFields = [
  'exec_start',
  'type',
  'description',
  'user',
  'group',
  'working_directory',
  'environment',
  'dependencies',
  'restart',
] as const;
export type UnitField = (typeof unitFields)[number];

/**
 * Fields that take effect only when the process starts. systemd applies the other fields to a running process.
 */
export const fixedAtStart: ReadonlySet<string> = new Set([
  'exec_start',
  'type',
  'user',
  'group',
  'working_directory',
  'environment',
  'unit_file',
  'symlink',
  'content',
  'settings',
]);

const header = '# Written by Muster. Changes by hand are undone by the next apply.';
/** Reports whether the agent wrote the unit. */
export const isOwn = (text: string): boolean => text.startsWith(header);

const suffixes = /\.(service|socket|device|mount|automount|swap|target|path|timer|slice|scope)$/;
const restarts = { always: 'always', on_failure: 'on-failure', never: 'no' } as const;

/** Settings by `Section.Key`. Each line of a value is one assignment; an empty line resets the earlier ones. */
export type Settings = Readonly<Record<string, string>>;

/** The lines of a unit file, by section. */
type Sections = Map<string, string[]>;

/** Renders the complete file of a service that the agent writes. */
export function renderUnit(body: Body): string {
  const lines = [...serviceLines(body), `ExecStart=${(body.exec_start ?? '').trim()}`];
  return render(installed(withSettings(unitLines(body), lines, body.settings ?? {}), 'service'));
}

/** Renders the drop-in for an existing service. Returns null if the resource declares no unit settings. */
export function renderDropIn(body: Body): string | null {
  const sections = withSettings(unitLines(body), serviceLines(body), body.settings ?? {});
  return sections.size === 0 ? null : render(sections);
}

/**
 * Renders a unit or a drop-in of any type.
 * @param name name of the unit; its type determines the target that starts it at boot; null for a drop-in
 */
export function renderSettings(settings: Settings, name: string | null): string {
  const sections = withSettings([], [], settings);
  return render(name === null ? sections : installed(sections, suffixes.exec(name)?.[1] ?? ''));
}

function withSettings(unit: string[], service: string[], settings: Settings): Sections {
  const sections: Sections = new Map();
  if (unit.length > 0) sections.set('Unit', unit);
  if (service.length > 0) sections.set('Service', service);
  // Sorts the names, because a database may store them in another order.
  for (const [name, value] of Object.entries(settings).sort(([a], [b]) => (a < b ? -1 : 1))) {
    const [section, key] = name.split('.') as [string, string];
    const lines = value.split('\n').map((line) => `${key}=${line.trim()}`);
    // A line break at the end is not an empty assignment.
    if (value.includes('\n') && value.endsWith('\n')) lines.pop();
    sections.set(section, [...(sections.get(section) ?? []), ...lines]);
  }
  return sections;
}

/** Target that starts units of a type at boot. Slices have none, because their units start them. */
const bootTargets: Readonly<Record<string, string>> = {
  service: 'multi-user.target',
  timer: 'timers.target',
  socket: 'sockets.target',
  path: 'paths.target',
  mount: 'local-fs.target',
  automount: 'local-fs.target',
  swap: 'swap.target',
  target: 'multi-user.target',
};

/** Adds the target that starts the unit at boot, unless the settings have an [Install] section. */
function installed(sections: Sections, type: string): Sections {
  const target = bootTargets[type];
  return sections.has('Install') || target === undefined
    ? sections
    : new Map([...sections, ['Install', [`WantedBy=${target}`]]]);
}

const placeOf = (section: string): number => (section === 'Unit' ? 0 : section === 'Install' ? 2 : 1);

function render(sections: Sections): string {
  const ordered = [...sections].sort(([a], [b]) => placeOf(a) - placeOf(b));
  return `${[header, ...ordered.flatMap(([name, lines]) => [`[${name}]`, ...lines])].join('\n')}\n`;
}

function unitLines({ description, dependencies }: Body): string[] {
  const lines: string[] = [];
  if (description != null) lines.push(`Description=${escapedValue(description)}`);
  // Sorts the names, because their order has no meaning and must not count as a change.
  const names = [...new Set((dependencies ?? []).map(unitName))].sort().join(' ');
  if (names !== '') lines.push(`Requires=${names}`, `After=${names}`);
  return lines;
}

function serviceLines(body: Body): string[] {
  const lines: string[] = [];
  if (body.type != null) lines.push(`Type=${body.type}`);
  if (body.user != null) lines.push(`User=${body.user}`);
  if (body.group != null) lines.push(`Group=${body.group}`);
  if (body.working_directory != null) lines.push(`WorkingDirectory=${escapedValue(body.working_directory)}`);
  for (const [name, value] of Object.entries(body.environment ?? {}).sort(([a], [b]) => (a < b ? -1 : 1)))
    lines.push(`Environment="${quoted(`${name}=${value}`)}"`);
  if (body.restart != null) lines.push(`Restart=${restarts[body.restart]}`);
  return lines;
}

/** Returns the name with its suffix, as After= expects it. A name without a suffix is a service. */
const unitName = (name: string): string => (suffixes.test(name) ? name : `${name}.service`);

/** Escapes `%`, which introduces a specifier, and a final backslash, which would join the next line. */
const escapedValue = (value: string): string => {
  const escaped = value.trim().replaceAll('%', '%%');
  return escaped.endsWith('\\') ? `${escaped} ` : escaped;
};

const quoted = (value: string): string =>
  value
    .replaceAll('\\', '\\\\')
    .replaceAll('"', '\\"')
    .replaceAll('\n', '\\n')
    .replaceAll('\t', '\\t')
    .replaceAll('%', '%%');

/** A parsed unit or drop-in: known fields as readable text, and all other lines. */
export interface ParsedUnit {
  fields: Partial<Record<UnitField, string>>;
  others: string[];
}

/** Parses any unit. Lines that it cannot interpret are returned in `others`. */
export function parseUnit(source: string): ParsedUnit {
  const values = new Map<string, string[]>();
  const others: string[] = [];
  for (const { key, value } of assignments(source)) {
    if (!known.has(key)) others.push(`${key}=${value}`);
    // An empty value resets the earlier ones.
    else if (value === '') values.delete(key);
    else values.set(key, [...(values.get(key) ?? []), value]);
  }
  const fields: ParsedUnit['fields'] = {};
  const last = (key: string): string | undefined => values.get(key)?.at(-1);
  const set = (field: UnitField, value: string | undefined): void => {
    if (value !== undefined && value !== '') fields[field] = value;
  };
  set('exec_start', values.get('Service.ExecStart')?.join('; '));
  set('type', last('Service.Type'));
  set('description', last('Unit.Description')?.replaceAll('%%', '%'));
  set('user', last('Service.User'));
  set('group', last('Service.Group'));
  set('working_directory', last('Service.WorkingDirectory')?.replaceAll('%%', '%'));
  set('environment', environmentOf(values.get('Service.Environment') ?? []));
  set('dependencies', dependenciesOf(values.get('Unit.Requires') ?? [], values.get('Unit.After') ?? []));
  const restart = last('Service.Restart');
  set('restart', Object.entries(restarts).find(([, word]) => word === restart)?.[0] ?? restart);
  return { fields, others };
}

const known = new Set([
  ...['Unit.Description', 'Unit.Requires', 'Unit.After', 'Service.Type', 'Service.User', 'Service.Group'],
  ...['Service.WorkingDirectory', 'Service.Environment', 'Service.ExecStart', 'Service.Restart'],
]);

function* assignments(source: string): Generator<{ key: string; value: string }> {
  let section = '';
  let open = '';
  for (const raw of source.split('\n')) {
    const line = raw.replace(/\r$/, '');
    if (/^\s*[#;]/.test(line)) continue;
    const joined = open + line;
    if (/(^|[^\\])(\\\\)*\\$/.test(joined)) {
      open = `${joined.slice(0, -1)} `;
      continue;
    }
    open = '';
    const trimmed = joined.trim();
    const heading = /^\[(.*)\]$/.exec(trimmed)?.[1];
    if (heading !== undefined) {
      section = heading;
      continue;
    }
    const cut = trimmed.indexOf('=');
    if (cut > 0) yield { key: `${section}.${trimmed.slice(0, cut).trim()}`, value: trimmed.slice(cut + 1).trim() };
  }
}

function environmentOf(lines: readonly string[]): string {
  const variables = new Map<string, string>();
  for (const word of lines.flatMap(words)) {
    const cut = word.indexOf('=');
    if (cut > 0) variables.set(word.slice(0, cut), word.slice(cut + 1));
  }
  return [...variables]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => `${name}=${/^[^\s"'\\]*$/.test(value) ? value : JSON.stringify(value)}`)
    .join(' ');
}

const escapes: Readonly<Record<string, string>> = {
  n: '\n',
  t: '\t',
  r: '\r',
  s: ' ',
  a: '\x07',
  b: '\b',
  f: '\f',
  v: '\v',
};

/** Splits a line into words and unquotes them as systemd does. */
function words(line: string): string[] {
  const found: string[] = [];
  let word: string | null = null;
  let quote = '';
  for (let i = 0; i < line.length; i++) {
    const char = line[i] as string;
    if (char === '\\') {
      const next = line[++i] ?? '';
      const code = next === 'x' ? /^[0-9a-fA-F]{2}/.exec(line.slice(i + 1))?.[0] : undefined;
      if (code !== undefined) i += 2;
      word =
        (word ?? '') + (code === undefined ? (escapes[next] ?? next) : String.fromCharCode(Number.parseInt(code, 16)));
    } else if (quote !== '') {
      if (char === quote) quote = '';
      else word = (word ?? '') + char;
    } else if (char === '"' || char === "'") {
      quote = char;
      word ??= '';
    } else if (/\s/.test(char)) {
      if (word !== null) found.push(word);
      word = null;
    } else word = (word ?? '') + char;
  }
  if (word !== null) found.push(word);
  return found.map((one) => one.replaceAll('%%', '%'));
}

function dependenciesOf(requires: readonly string[], after: readonly string[]): string {
  const names = (lines: readonly string[]): string =>
    [...new Set(lines.flatMap((line) => line.split(/\s+/)).filter((name) => name !== ''))].sort().join(' ');
  const [needed, before] = [names(requires), names(after)];
  if (needed === before) return needed;
  return [needed === '' ? '' : `Requires=${needed}`, before === '' ? '' : `After=${before}`]
    .filter((part) => part !== '')
    .join('; ');
}

/** Settings that a field of `service-systemd` writes. */
const fieldOf: Readonly<Record<string, UnitField>> = {
  'Unit.Description': 'description',
  'Unit.Requires': 'dependencies',
  'Service.Type': 'type',
  'Service.User': 'user',
  'Service.Group': 'group',
  'Service.WorkingDirectory': 'working_directory',
  'Service.Environment': 'environment',
  'Service.ExecStart': 'exec_start',
  'Service.Restart': 'restart',
};

/**
 * Returns the reason why a body cannot be rendered as a unit, or null if it can.
 */
export function unitFault(body: Body): string | null {
  const { name, exec_start, working_directory, environment, settings } = body;
  const [, suffix] = suffixes.exec(name) ?? [];
  if (suffix !== undefined && suffix !== 'service')
    return `${name} is not a service: service-systemd manages .service units; declare .${suffix} units with unit-systemd`;
  for (const setting of Object.keys(settings ?? {})) {
    const field = fieldOf[setting];
    if (field !== undefined && body[field] != null) return `\`${field}\` already declares the setting ${setting}`;
  }
  if (/^[^@]*@$/.test(name)) return `${name} is a template; name an instance of it, such as ${name}1`;
  if (exec_start != null && exec_start.trim() === '') return '`exec_start` is empty';
  if (exec_start?.trim().endsWith('\\')) return '`exec_start` ends in a backslash, which would join the next line';
  if (working_directory != null && /[\x00-\x1f\x7f]/.test(working_directory))
    return '`working_directory` contains a line break or another control character';
  for (const [variable, value] of Object.entries(environment ?? {}))
    if (/[\x00-\x08\x0b-\x1f\x7f]/.test(value) || !value.isWellFormed())
      return `\`environment\`: ${variable} contains a control character, which systemd does not accept`;
  return null;
}

/** Returns the reason why a `unit-systemd` cannot be applied, or null if it can. */
export function otherUnitFault(body: ResourceBodies['unit-systemd']): string | null {
  const { name, content, settings, drop_in, enabled, running, masked, ensure } = body;
  if (ensure === 'absent') return null;
  const written = content ?? settings;
  if (masked === true) {
    const excluded = content != null ? 'content' : settings != null ? 'settings' : null;
    if (excluded !== null) return `a masked unit has no \`${excluded}\`: remove it, or \`masked\``;
    if (enabled === true || running === true)
      return `a masked unit cannot be started: remove \`${enabled === true ? 'enabled' : 'running'}\`, or \`masked\``;
  }
  if (drop_in === true && written == null) return '`drop_in` needs `content` or `settings`';
  if (content != null && drop_in !== true && enabled === true && !/^\s*\[Install\]\s*$/m.test(content))
    return `${name} cannot be enabled: its \`content\` has no [Install] section, which names what starts it at boot`;
  if (
    settings != null &&
    drop_in !== true &&
    enabled === true &&
    name.endsWith('.slice') &&
    !('Install.WantedBy' in settings)
  )
    return `${name} cannot be enabled: its units start a slice`;
  return null;
}
