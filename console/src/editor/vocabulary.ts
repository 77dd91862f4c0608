import { type ExpressionPosition, expressionAt } from './expression-position.ts';
import { type LoopVariable, type ModuleOutline, outlineOf } from './outline.ts';
import { descriptionOf, type JsonSchema, keysOf, schemasAt, typeText } from './schema.ts';
import { positionAt, type Step } from './yaml-position.ts';

/** The names, functions, and control words that an expression can use. */

export interface Known {
  readonly schema: JsonSchema;
  readonly secrets: readonly string[];
  /** Tag keys. */
  readonly tags: readonly string[];
  /** The agent whose values are shown in descriptions; null if none is chosen. */
  readonly agent?: ChosenAgent | null;
}

export interface ChosenAgent {
  readonly name: string;
  readonly node_id: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly tags: Readonly<Record<string, string>>;
  /** Values that assignments set for the module's parameters. */
  readonly parameters: ReadonlyMap<string, unknown>;
}

export interface Word {
  readonly label: string;
  /** Type or form, in a few words. */
  readonly detail: string;
  readonly info: string;
  /** `name`: a value. `call`: a function, which is followed by its arguments. `word`: a control word of a template. */
  readonly kind: 'name' | 'call' | 'word';
}

const attributes: Readonly<Record<string, string>> = {
  platform: 'linux, windows, or macos',
  distro: 'for example debian, fedora',
  version: 'version of the distribution',
  major: 'major version of the distribution',
  codename: 'for example bookworm, noble',
  family: 'debian, redhat, suse, arch, or alpine',
  arch: 'x86_64, aarch64, or armv7',
  init_system: 'systemd, openrc, init.d, launchd, or scm',
  systemd_version: 'major version of systemd',
  hostname: 'current host name',
  fqdn: 'host name with its domain',
  addresses: 'addresses, separated by commas',
  default_address: 'address of the interface with the default route',
  default_interface: 'interface with the default route',
  default_ipv4_address: 'IPv4 address of the interface with the default route',
  default_ipv4_interface: 'interface with the IPv4 default route',
  default_ipv6_address: 'IPv6 address of the interface with the default route',
  default_ipv6_interface: 'interface with the IPv6 default route',
  kernel: 'kernel release',
  cpus: 'number of processors',
  memory_bytes: 'physical memory in bytes',
  virtualization: 'for example kvm, docker, none',
  container: 'true or false',
  selinux: 'enforcing, permissive, or disabled',
  efi: 'true or false',
  timezone: 'for example Europe/Paris',
  remote_terminal: 'true if the agent offers terminals',
};

const controlWords: readonly Word[] = [
  ['for', 'for x in LIST', 'Repeats the text up to ${{ end }}'],
  ['if', 'if CONDITION', 'Writes the text up to ${{ end }} if the condition holds'],
  ['elif', 'elif CONDITION', 'Another condition of an if'],
  ['else', 'else', 'Writes the text if no condition of an if holds'],
  ['end', 'end', 'Ends a for or an if'],
  ['include', 'include "ID"', 'Inserts the text of another template'],
].map(([label = '', detail = '', info = '']) => ({ label, detail, info, kind: 'word' }));

const name = (label: string, detail: string, info: string): Word => ({ label, detail, info, kind: 'name' });

/** Returns the words that the expression at an offset can use, or null if there is no expression. */
export function wordsAt(
  text: string,
  offset: number,
  known: Known,
): { readonly at: ExpressionPosition; readonly words: readonly Word[] } | null {
  const position = positionAt(text, offset);
  const at = expressionAt(text, offset, position);
  if (at === null) return null;
  const all = functionsOf(known);
  const functions = all.filter(({ label }) => !isMethod(label));
  if (/(^|[^|])\|\s*$/.test(at.before)) return { at, words: functions };
  const owner = ownerOf(at);
  const methods =
    owner === null ? [] : all.flatMap((one) => (isMethod(one.label) ? [{ ...one, label: owner + one.label }] : []));
  if (owner === '') return { at, words: methods };
  const outline = outlineOf(text);
  const path = position?.path ?? [];
  const isContent = at.kind === 'text' && at.before.trim() === '' && path.at(-1) === 'content';
  return {
    at,
    words: [
      ...outline.parameters.flatMap(({ name: parameter, type, description, keys }) => [
        name(`param.${parameter}`, type, description ?? 'A parameter of this module'),
        ...(type === 'map' ? keys.map((key) => name(`param.${parameter}.${key}`, 'key', `A key of ${parameter}`)) : []),
      ]),
      ...variablesAt(outline, path, text.slice(0, at.from)).flatMap(wordsOfVariable),
      ...outline.lookups.map((lookup) =>
        name(`lookup.${lookup.name}`, 'list', `${lookup.of ?? 'Values'} of other agents`),
      ),
      ...(at.kind === 'value'
        ? []
        : known.secrets.map((secret) => name(`secrets.${secret}`, 'secret', 'The whole field is hidden in results'))),
      name('agent.name', 'text', 'The name of the agent'),
      name('agent.node_id', 'text', 'The ID of the agent'),
      ...Object.entries(attributes).map(([attribute, info]) => name(`attr.${attribute}`, 'attribute', info)),
      ...Object.keys(known.agent?.attributes ?? {})
        .filter((attribute) => !Object.hasOwn(attributes, attribute))
        .map((attribute) => name(`attr.${attribute}`, 'attribute', 'A fact that the agent reports')),
      ...known.tags.map((tag) => name(`tag.${tag}`, 'tag', 'The value of this tag of the agent')),
      ...(isContent ? controlWords : []),
      ...functions,
      ...methods,
    ],
  };
}

const isMethod = (label: string): boolean => label.startsWith('.');

/** Returns the functions of the schema. The label of a method begins with a dot. */
function functionsOf({ schema }: Known): Word[] {
  return (schema['x-functions'] ?? []).map(({ name: called, form, about }) => {
    const owner = /^([a-z]+)\./.exec(form)?.[1];
    const label = owner === undefined ? called : owner === 'cel' ? `cel.${called}` : `.${called}`;
    return { label, detail: form, info: about.replaceAll('`', ''), kind: 'call' };
  });
}

/**
 * Returns the text before a method name. Returns an empty string if that text is a longer expression, and null if there
 * is no such text.
 */
function ownerOf({ before, word }: ExpressionPosition): string | null {
  if (before.endsWith('.')) return '';
  const owner = word.slice(0, Math.max(0, word.lastIndexOf('.')));
  return owner.includes('.') ? owner : null;
}

const wordsOfVariable = ({ name: variable, keys }: LoopVariable): Word[] => [
  name(
    variable,
    variable === 'index' ? 'number' : 'element',
    variable === 'index' ? 'The position of the element, from 0' : 'The current element of the loop',
  ),
  ...keys.map((key) => name(`${variable}.${key}`, 'key', 'A key of the element')),
];

/**
 * Returns the variables of the loops around a position. A template may be used in any resource, so inside a template
 * all loops apply.
 */
function variablesAt({ loops }: ModuleOutline, path: readonly Step[], before: string): LoopVariable[] {
  const around = path[0] === 'resources' && typeof path[1] === 'number' ? (loops[path[1]] ?? []) : loops.flat();
  const key = path[0] === 'resources' ? path[2] : null;
  // `for_each` and `when` are evaluated before the loop has an element.
  const ofResource = key === 'for_each' || key === 'when' ? [] : around;
  const merged = new Map<string, Set<string>>();
  for (const { name: variable, keys } of [...ofResource, ...openLoops(before)]) {
    const known = merged.get(variable) ?? new Set<string>();
    merged.set(variable, known);
    for (const each of keys) known.add(each);
  }
  return [...merged].map(([variable, keys]) => ({ name: variable, keys: [...keys] }));
}

/** Maximum number of characters to search for loops. */
const maximumText = 20_000;

/** Returns the variables of a template's loops that are still open at the end of the text. */
function openLoops(before: string): LoopVariable[] {
  const open: LoopVariable[][] = [];
  const control = /\$\{\{\s*(?:for\s+([A-Za-z_]\w*)(?:\s*,\s*([A-Za-z_]\w*))?\s+in\b|(if|end)\b)/g;
  for (const [, first, second, word] of before.slice(-maximumText).matchAll(control)) {
    if (word === 'end') open.pop();
    else
      open.push([first, second].flatMap((variable) => (variable === undefined ? [] : [{ name: variable, keys: [] }])));
  }
  return open.flat();
}

export interface Hover {
  readonly from: number;
  readonly to: number;
  readonly word: Word;
  /**
   * The value on the chosen agent as JSON; null if there is none, undefined if no agent is chosen or the value is
   * unknown before a plan.
   */
  readonly value: string | null | undefined;
}

/** Returns the description of the name or function in an expression, or of the key of the module, at an offset. */
export const hoverAt = (text: string, offset: number, known: Known): Hover | null =>
  wordHover(text, offset, known) ?? keyHover(text, offset, known);

function wordHover(text: string, offset: number, known: Known): Hover | null {
  const to = offset + (/^[A-Za-z0-9_./-]*/.exec(text.slice(offset, offset + 200))?.[0].length ?? 0);
  const found = wordsAt(text, to, known);
  if (found === null || found.at.word === '') return null;
  const { at, words } = found;
  // For a key that is not declared, looks up the name without the key.
  for (let label = at.word; label !== ''; label = label.slice(0, Math.max(0, label.lastIndexOf('.')))) {
    const word = words.find((one) => one.label === label) ?? words.find((one) => one.label === `.${label}`);
    if (word !== undefined)
      return { from: at.from, to: at.from + label.length, word, value: shownValue(word.label, text, known) };
  }
  return null;
}

/** Returns the description of a resource kind, a field, or another key of the schema. */
function keyHover(text: string, offset: number, { schema }: Known): Hover | null {
  const to = offset + (/^[\w-]*/.exec(text.slice(offset, offset + 200))?.[0].length ?? 0);
  if (!/^["']?\s*:/.test(text.slice(to, to + 20))) return null;
  const position = positionAt(text, to);
  if (position?.kind !== 'open' || position.from > offset) return null;
  const label = text.slice(position.from, to);
  const key = keysOf(schemasAt(schema, position.path)).find(({ name: one }) => one === label);
  if (key === undefined) return null;
  const word = name(label, typeText(key.schema), descriptionOf(key.schema));
  return { from: position.from, to, word, value: undefined };
}

/** Maximum length of a shown value, in characters. */
const maximumValue = 300;

function shownValue(label: string, text: string, { agent = null }: Known): string | null | undefined {
  const value = agent === null ? undefined : valueOn(agent, label, text);
  if (value === undefined || value === null) return value;
  const shown = JSON.stringify(value);
  return shown.length > maximumValue ? `${shown.slice(0, maximumValue)}…` : shown;
}

/** Returns a name's value on an agent; null if there is none, undefined if the value is unknown before a plan. */
function valueOn(agent: ChosenAgent, label: string, text: string): unknown {
  const [root = '', first = '', ...keys] = label.split('.');
  const key = label.slice(root.length + 1);
  if (root === 'agent') return key === 'name' ? agent.name : agent.node_id;
  if (root === 'attr') return ownValue(agent.attributes, key) ?? null;
  if (root === 'tag') return ownValue(agent.tags, key) ?? null;
  if (root !== 'param') return undefined;
  const given =
    agent.parameters.get(first) ?? outlineOf(text).parameters.find(({ name: one }) => one === first)?.default;
  return keys.reduce(ownValue, given) ?? null;
}

const ownValue = (value: unknown, key: string): unknown =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, key)
    ? (value as Record<string, unknown>)[key]
    : undefined;
