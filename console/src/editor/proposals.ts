import { type ModuleOutline, outlineOf } from './outline.ts';
import {
  descriptionOf,
  formOf,
  type JsonSchema,
  keysOf,
  type SchemaKey,
  schemasAt,
  typeText,
  valuesOf,
} from './schema.ts';
import { type Position, positionAt } from './yaml-position.ts';

/** Completes modules from their text, the schema, and the secret and tag names. */

export interface Known {
  readonly schema: JsonSchema;
  readonly secrets: readonly string[];
  /** Tag keys. */
  readonly tags: readonly string[];
}

export interface Proposal {
  readonly label: string;
  /** Text that replaces the typed word. */
  readonly apply: string;
  /** Type of the key or value, in one word. */
  readonly detail: string;
  /** Description of the key or value. */
  readonly info: string;
  readonly kind: 'key' | 'value' | 'reference';
  /** Whether the key is required. Required keys are listed first. */
  readonly required: boolean;
  /** Whether accepting this proposal opens the completion again. */
  readonly goesOn: boolean;
}

export interface Proposals {
  readonly from: number;
  readonly options: readonly Proposal[];
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

const idLists: readonly unknown[] = ['depends_on', 'reload_on', 'restart_on', 'rerun_on'];

export function proposalsAt(text: string, offset: number, known: Known): Proposals | null {
  const inExpression = expressionProposals(text, offset, known);
  if (inExpression !== null) return inExpression;
  const position = positionAt(text, offset);
  if (position === null || position.kind === 'text') return null;
  const options =
    position.kind === 'open' ? openProposals(position, text, offset, known) : valueProposals(position, text, known);
  return options.length === 0 ? null : { from: position.from, options };
}

function openProposals(position: Position, text: string, offset: number, known: Known): Proposal[] {
  const schemas = schemasAt(known.schema, position.path);
  const list = schemas.find(({ type }) => type === 'array');
  const isPlainList = list?.items !== undefined && position.kind === 'open' && !position.flow;
  const keys = (of: readonly JsonSchema[], lead: string) => {
    const there = new Set(position.present);
    const open = keysOf(of).filter(({ name }) => !there.has(name));
    // Exactly one of these keys is allowed, such as a resource's kind.
    const isChoice = of.some((schema) => 'oneOf' in schema) && of.every(({ required }) => required === undefined);
    const chosen = isChoice && keysOf(of).every(({ schema }) => formOf(schema) === 'mapping') && there.size > 0;
    const column = position.column + lead.length;
    const followed = /^[\w-]*\s*:/.test(text.slice(offset, offset + 100));
    return chosen ? [] : open.map((key) => keyProposal(key, position.flow, column, lead, followed));
  };
  if (isPlainList) {
    const items = schemasAt(known.schema, [...position.path, 0]);
    const nested = keys(items, '- ');
    if (nested.length > 0) return nested;
    return valueProposals({ ...position, path: [...position.path, 0] }, text, known).map((value) => ({
      ...value,
      apply: `- ${value.apply}`,
    }));
  }
  return [...keys(schemas, ''), ...valueProposals(position, text, known)];
}

function keyProposal(key: SchemaKey, flow: boolean, column: number, lead: string, followed: boolean): Proposal {
  const { name, schema, required } = key;
  const form = formOf(schema);
  return {
    label: name,
    apply: lead + name + (followed ? '' : behind(schema, form, flow, column)),
    detail: typeText(schema),
    info: descriptionOf(schema),
    kind: 'key',
    required,
    goesOn: !followed,
  };
}

/** Returns the text to insert after a key, up to the value's position. */
function behind(schema: JsonSchema, form: 'mapping' | 'list' | 'scalar', flow: boolean, column: number): string {
  const margin = `\n${' '.repeat(column + 2)}`;
  if (form === 'scalar') return ': ';
  if (form === 'list') return flow ? ': [' : `:${margin}- `;
  // A mapping with exactly one required field starts with that field.
  const required = keysOf(schemasAt(schema, [])).filter((key) => key.required && formOf(key.schema) === 'scalar');
  const first = required.length === 1 ? `${(required[0] as SchemaKey).name}: ` : '';
  return flow ? `: { ${first}` : `:${margin}${first}`;
}

function valueProposals(position: Position, text: string, known: Known): Proposal[] {
  const steps = position.path;
  const schemas = schemasAt(known.schema, steps);
  const value = (label: string, detail: string, info: string, kind: Proposal['kind']): Proposal => ({
    ...{ label, apply: label, detail, info, kind, required: false, goesOn: false },
  });
  const listed = valuesOf(schemas).map((label) => value(label, '', '', 'value'));
  if (listed.length > 0) return listed;
  const isItem = typeof steps.at(-1) === 'number';
  const key = isItem ? steps.at(-2) : steps.at(-1);
  if (isItem && idLists.includes(key) && schemas.length > 0)
    return outlineOf(text).ids.map((id) => value(id, 'id', 'A resource of this module', 'reference'));
  if (!isItem && key === 'template' && schemas.length > 0)
    return outlineOf(text).templates.map((id) => value(id, 'template', 'A template of this module', 'reference'));
  if (!isItem && key === 'for_each' && schemas.length > 0)
    return outlineOf(text)
      .parameters.filter(({ type }) => type === 'list')
      .map(({ name, description }) =>
        value(`"\${{ param.${name} }}"`, 'list', description ?? 'A parameter of this module', 'reference'),
      );
  return [];
}

/** Completes references in `${{ … }}`. */
function expressionProposals(text: string, offset: number, known: Known): Proposals | null {
  const line = text.slice(Math.max(text.lastIndexOf('\n', offset - 1) + 1, offset - 1_000), offset);
  const found = /(?<!\$)\$\{\{\s*([A-Za-z0-9_./-]*)$/.exec(line);
  if (found === null) return null;
  const word = found[1] as string;
  const rest = text.slice(offset, offset + 200);
  const isClosed = /^[^\n{]*\}\}/.test(rest);
  const option = (label: string, detail: string, info: string): Proposal => ({
    ...{
      label,
      apply: isClosed ? label : `${label} }}`,
      detail,
      info,
      kind: 'reference',
      required: false,
      goesOn: false,
    },
  });
  const { parameters }: ModuleOutline = outlineOf(text);
  const options = [
    ...parameters.map(({ name, type, description }) =>
      option(`param.${name}`, type, description ?? 'A parameter of this module'),
    ),
    ...known.secrets.map((name) => option(`secrets.${name}`, 'secret', 'The whole field is hidden in results')),
    option('agent.name', 'text', 'The name of the agent'),
    option('agent.node_id', 'text', 'The id of the agent'),
    ...Object.entries(attributes).map(([name, info]) => option(`attr.${name}`, 'attribute', info)),
    ...known.tags.map((name) => option(`tag.${name}`, 'tag', 'The value of this tag of the agent')),
    ...(/for_each\s*:/.test(text) ? [option('each', 'element', 'The current element of for_each')] : []),
  ];
  return { from: offset - word.length, options };
}
