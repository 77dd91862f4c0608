import { readdirSync } from 'node:fs';
import { basename, join } from 'node:path';

interface Layer {
  readonly folder: string;
  /** Whether the files are grouped into folders by area. */
  readonly nested: boolean;
  /** File and folder names that are not nouns. If given, every other name must be a noun. */
  readonly others?: readonly string[];
}

const protocol = 'protocol/src/http';
/** The layer whose files define the nouns. Every other layer has a file for each noun. */
const routes = 'orchestrator/src/http/routes';
const domain = 'orchestrator/src/domain';
const queries = 'orchestrator/src/store/queries';
const verbs = 'cli/src/verbs';
const api = 'console/src/api';
const pages = 'console/src/pages';

export const layers: readonly Layer[] = [
  { folder: protocol, nested: true, others: ['event-types', 'fields', 'index', 'route', 'tag-descriptions'] },
  { folder: routes, nested: true, others: ['index'] },
  { folder: domain, nested: true },
  { folder: queries, nested: true },
  { folder: verbs, nested: true },
  { folder: api, nested: true },
  {
    ...{ folder: pages, nested: false },
    others: [
      ...['apply', 'draft-shape', 'item-page', 'links', 'use-draft-fields'],
      ...['use-leave-guard', 'use-match-hint', 'use-stored-draft'],
    ],
  },
];

/** Reasons why a noun has no file in a layer, by noun and folder. */
export const exceptions: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  discovery: {
    [queries]: 'has no table',
    [api]: 'the console does not discover machines',
    [pages]: 'the console does not discover machines',
  },
  events: {
    [queries]: 'are stored in the audit log',
    [pages]: 'shown on every page',
  },
  kinds: { [queries]: 'has no table' },
  metrics: {
    [queries]: 'samples have their own store',
    [pages]: 'shown on the agent page',
  },
  replicas: {
    [queries]: 'store/replicas.ts has the queries, because the store registers processes',
    [pages]: 'shown on the settings page',
  },
  state: { [pages]: 'shown on the agent page' },
  status: {
    [domain]: 'has no rules, because it only reports the state of the process',
    [queries]: 'has no table',
    [pages]: 'shown on the settings page',
  },
  tags: { [pages]: 'shown on the agent page' },
  values: {
    [queries]: 'has no table',
    [pages]: 'shown on the agent page',
  },
};

/**
 * Lists three kinds of errors: route nouns that lack a file in a layer, other files in a layer that may contain only
 * nouns, and unused exceptions.
 * @param namesIn returns the names of the files and folders in a layer, without extensions
 */
export function nounFaults(
  namesIn: (layer: Layer) => ReadonlySet<string>,
  except: typeof exceptions = exceptions,
): string[] {
  const faults: string[] = [];
  const used = new Set<string>();
  const list = [...namesIn(layers.find(({ folder }) => folder === routes)!)].filter((name) => name !== 'index');
  for (const layer of layers) {
    const names = namesIn(layer);
    for (const noun of list) {
      const isExcepted = except[noun]?.[layer.folder] !== undefined;
      if (isExcepted) used.add(`${noun} ${layer.folder}`);
      if (names.has(noun) && isExcepted)
        faults.push(`tools/checks/nouns.ts  ${noun} has a file in ${layer.folder}; delete its exception`);
      if (!names.has(noun) && !isExcepted)
        faults.push(
          `${layer.folder}  has no file ${noun}; rename the file, or give the reason in tools/checks/nouns.ts`,
        );
    }
    if (layer.others === undefined) continue;
    for (const name of names)
      if (!list.includes(name) && !layer.others.includes(name))
        faults.push(
          `${layer.folder}/${name}  has no handlers in ${routes}; rename it, or add it to tools/checks/nouns.ts`,
        );
    for (const name of layer.others)
      if (!names.has(name))
        faults.push(`tools/checks/nouns.ts  ${layer.folder}/${name} does not exist; delete its name`);
  }
  for (const [noun, reasons] of Object.entries(except))
    for (const folder of Object.keys(reasons))
      if (!used.has(`${noun} ${folder}`))
        faults.push(`tools/checks/nouns.ts  ${noun} in ${folder} is not a noun and a layer; delete its exception`);
  return faults;
}

/** Returns the names of the files and folders in a layer, without extensions and tests. */
export const namesIn =
  (root: string) =>
  ({ folder, nested }: Layer): ReadonlySet<string> =>
    new Set(
      readdirSync(join(root, folder), { withFileTypes: true, recursive: nested })
        .filter((entry) => !entry.name.includes('.test.') && (!nested || entry.isFile()))
        .map(({ name }) => basename(name).replace(/\.tsx?$/, '')),
    );
