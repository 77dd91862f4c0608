import { quoted } from '../nearest.ts';
import type { Outline } from '../outline.ts';
import type { Path } from '../source/tree.ts';
import type { Block } from './blocks.ts';
import { parseExpressions } from './expression.ts';
import type { ControlPart, Part } from './parts.ts';

/** The names of variables that the templates of a module use and define. */
export interface TemplateNames {
  readonly ids: ReadonlySet<string>;
  /** The loop variables of the whole module; undefined if a control word has an error, because its names are unknown. */
  readonly variables: ReadonlySet<string> | undefined;
  /** Templates that include themselves. */
  readonly cycles: readonly { readonly path: Path; readonly offset: number; readonly message: string }[];
  /**
   * Returns the names that the text around a template must define, including those for the templates that it includes.
   */
  namesOf(id: string): ReadonlySet<string>;
}

type Texts = ReadonlyMap<string, readonly { readonly content: string; readonly path: Path }[]>;

/** Reports whether the control words of a text have errors, which leave its blocks unknown. */
const isFaulty = (text: string): boolean => {
  const { blocks, faults } = parseExpressions(text);
  return blocks === null && faults.length > 0;
};

/**
 * Returns the expressions of a text with their blocks. Returns none for a text whose control words have errors, because
 * names that its loops define would seem undefined.
 */
const blocksIn = (text: string): readonly Block[] => {
  const { parts, blocks } = parseExpressions(text);
  if (isFaulty(text)) return [];
  return blocks ?? parts.filter((part: Part): part is Exclude<Part, ControlPart> => part.kind !== 'control');
};

export function namesOfTemplates({ templates, resources }: Outline): TemplateNames {
  const texts: Texts = Map.groupBy(
    templates.flatMap(({ id, content, path }) => (id === undefined ? [] : [{ id, content, path }])),
    ({ id }) => id,
  );
  const variables = new Set<string>();
  for (const { forEach } of resources)
    if (forEach?.kind === 'nested') for (const { name } of forEach.loops) variables.add(name);
  const contents = resources.flatMap(({ candidates }) => candidates.map(({ body }) => body.content));
  const all = [...templates.map(({ content }) => content), ...contents].filter((text) => typeof text === 'string');
  for (const text of all) addVariables(blocksIn(text), variables);
  const known = new Map<string, ReadonlySet<string>>();
  const namesOf = (id: string): ReadonlySet<string> => {
    const found = known.get(id);
    if (found !== undefined) return found;
    const names = new Set<string>();
    // Ends the recursion for templates that include each other.
    known.set(id, names);
    for (const { content } of texts.get(id) ?? []) addFree(blocksIn(content), new Set(), namesOf, names);
    return names;
  };
  const areKnown = !all.some(isFaulty);
  return { ids: new Set(texts.keys()), variables: areKnown ? variables : undefined, cycles: cyclesIn(texts), namesOf };
}

function addVariables(blocks: readonly Block[], variables: Set<string>): void {
  for (const block of blocks) {
    if (block.kind === 'for') {
      for (const name of block.names) variables.add(name);
      addVariables(block.body, variables);
    } else if (block.kind === 'if') {
      for (const { body } of block.branches) addVariables(body, variables);
    }
  }
}

function addFree(
  blocks: readonly Block[],
  bound: ReadonlySet<string>,
  namesOf: (id: string) => ReadonlySet<string>,
  free: Set<string>,
): void {
  const add = (names: Iterable<string>): void => {
    for (const name of names) if (!bound.has(name)) free.add(name);
  };
  const addOf = (block: Block): void => {
    if (block.kind === 'expression' && block.root === 'each') add(['each']);
    if (block.kind !== 'cel') return;
    add(block.compiled.ofLoops);
    add(['each', 'index'].filter((name) => block.compiled.variables.has(name)));
  };
  for (const block of blocks) {
    addOf(block);
    if (block.kind === 'include') add(namesOf(block.id));
    if (block.kind === 'for') {
      addOf(block.list);
      addFree(block.body, new Set([...bound, ...block.names]), namesOf, free);
    }
    if (block.kind === 'if')
      for (const { condition, body } of block.branches) {
        if (condition !== null) addOf(condition);
        addFree(body, bound, namesOf, free);
      }
  }
}

/** Returns the IDs of the templates that a string includes, with the offsets of the control words. */
export function includesIn(text: string): { id: string; offset: number }[] {
  const visit = (blocks: readonly Block[]): { id: string; offset: number }[] =>
    blocks.flatMap((block) => {
      if (block.kind === 'include') return [{ id: block.id, offset: block.offset }];
      if (block.kind === 'for') return visit(block.body);
      return block.kind === 'if' ? block.branches.flatMap(({ body }) => visit(body)) : [];
    });
  if (!text.includes('include')) return [];
  const { parts, blocks } = parseExpressions(text);
  if (blocks !== null) return visit(blocks);
  return parts.flatMap((part) =>
    part.kind === 'control' && part.control.word === 'include' ? [{ id: part.control.id, offset: part.offset }] : [],
  );
}

function cyclesIn(texts: Texts): TemplateNames['cycles'] {
  const done = new Set<string>();
  const found: { path: Path; offset: number; message: string }[] = [];
  const visit = (id: string, above: readonly string[]): void => {
    if (done.has(id)) return;
    for (const { content, path } of texts.get(id) ?? [])
      for (const included of includesIn(content)) {
        const start = [...above, id].indexOf(included.id);
        if (start === -1) {
          visit(included.id, [...above, id]);
          continue;
        }
        const cycle = [...above, id, included.id].slice(start).map((name) => quoted(name));
        const message = `templates include each other: ${cycle.join(' -> ')}`;
        found.push({ path: [...path, 'content'], offset: included.offset, message });
      }
    done.add(id);
  };
  for (const id of texts.keys()) visit(id, []);
  return found;
}
