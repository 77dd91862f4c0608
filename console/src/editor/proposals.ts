import { outlineOf } from './outline.ts';
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
import { type Known, type Word, wordsAt } from './vocabulary.ts';
import { type Position, positionAt } from './yaml-position.ts';

/** Completes modules from their text, the schema, and the names of secrets and tags. */

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
  /** Whether to open the completion again after this proposal is accepted. */
  readonly goesOn: boolean;
}

export interface Proposals {
  readonly from: number;
  readonly options: readonly Proposal[];
}

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
    // Keys of which exactly one is allowed, such as a resource's kind.
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
  return [...keys(schemas, ''), ...conditionKeys(position, text, known), ...valueProposals(position, text, known)];
}

/** Proposes the parameters and tags as keys of `when`. */
function conditionKeys({ path, present }: Position, text: string, { tags }: Known): Proposal[] {
  if (path.at(-1) !== 'when') return [];
  const parameters = outlineOf(text).parameters.filter(({ type }) => type !== 'list' && type !== 'map');
  const names = [...parameters.map(({ name }) => `param.${name}`), ...tags.map((tag) => `tag.${tag}`)];
  return names
    .filter((label) => !present.includes(label))
    .map((label) => ({
      ...{ label, apply: `${label}: `, detail: 'value', info: '', kind: 'key', required: false, goesOn: false },
    }));
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

/** Completes names and functions in expressions. */
function expressionProposals(text: string, offset: number, known: Known): Proposals | null {
  const found = wordsAt(text, offset, known);
  if (found === null) return null;
  const { at, words } = found;
  const isClosed = at.kind === 'value' || /^[^\n{]*\}\}/.test(text.slice(offset, offset + 200));
  const isSole = at.before.trim() === '';
  return {
    from: at.from,
    options: words.map((word) => wordProposal(word, { isClosed, isSole, isPipe: isPipe(at.before) })),
  };
}

const isPipe = (before: string): boolean => /\|\s*$/.test(before);

function wordProposal(
  { label, detail, info, kind }: Word,
  { isClosed, isSole, isPipe }: { isClosed: boolean; isSole: boolean; isPipe: boolean },
): Proposal {
  // After a pipe, the first argument is the value before the pipe.
  const isCall = kind === 'call' && !(isPipe && !/[,)]/.test(detail.slice(detail.indexOf('(') + 1, -1)));
  const end = isCall ? '(' : kind === 'word' ? (label === 'end' || label === 'else' ? '' : ' ') : '';
  const close = !isClosed && isSole && (kind === 'name' || label === 'end' || label === 'else') ? ' }}' : '';
  const shown = label.startsWith('.') ? label.slice(1) : label;
  return {
    label: shown,
    apply: `${shown}${end}${close}`,
    detail,
    info,
    kind: 'reference',
    required: false,
    goesOn: false,
  };
}
