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
]);

const header = '# Written by Muster. Changes by hand are undone by the next apply.';
/** Reports whether the agent wrote the unit. */
export const isOwn = (text: string): boolean => text.startsWith(header);

const suffixes = /\.(service|socket|device|mount|automount|swap|target|path|timer|slice|scope)$/;
const restarts = { always: 'always', on_failure: 'on-failure', never: 'no' } as const;

/** Renders the complete file of a unit that the agent writes. */
export const renderUnit = (body: Body): string =>
  text(
    unitLines(body),
    [...serviceLines(body), `ExecStart=${(body.exec_start ?? '').trim()}`],
    ['WantedBy=multi-user.target'],
  );

/** Renders the drop-in for an existing unit. Returns null if the resource declares no unit settings. */
export function renderDropIn(body: Body): string | null {
  const [unit, service] = [unitLines(body), serviceLines(body)];
  return unit.length + service.length === 0 ? null : text(unit, service, []);
}

function text(unit: string[], service: string[], install: string[]): string {
  const section = (name: string, lines: string[]): string[] => (lines.length === 0 ? [] : [`[${name}]`, ...lines]);
  const lines = [header, ...section('Unit', unit), ...section('Service', service), ...section('Install', install)];
  return `${lines.join('\n')}\n`;
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

/** Parses any unit. Lines that it cannot interpret are in `others`. */
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

/**
 * Returns the reason why a body cannot be rendered as a unit, or null if it can.
 */
export function unitFault({ name, exec_start, working_directory, environment }: Body): string | null {
  const [, suffix] = suffixes.exec(name) ?? [];
  if (suffix !== undefined && suffix !== 'service')
    return `${name} is not a service: service-systemd manages .service units; other unit types, such as .${suffix}, are not supported yet`;
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
