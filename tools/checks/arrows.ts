import { posix } from 'node:path';
import { isNetwork } from './browser-calls.ts';

/**
 * Import rules by path. Every workspace may import the protocol. The apps never import each other; code that several
 * apps need belongs to a library: `lib` for code that runs on Node, `client` for code that also runs in browsers.
 * Within an app, a layer may import only the layers listed here after its name. `compose` and `main.ts` wire the parts:
 * they may import every layer, and no layer may import them.
 */
const layers: Record<string, Record<string, readonly string[]>> = {
  orchestrator: {
    http: ['domain', 'bus', 'identity', 'admission'],
    gateway: ['domain', 'bus', 'identity', 'admission'],
    // Decides which connections a port accepts before the client sends data.
    admission: [],
    schedule: ['domain', 'bus'],
    // Commands that open the database of a stopped orchestrator. They use domain code but do not start the domain.
    offline: ['domain', 'store', 'identity'],
    deliver: ['domain'],
    screen: ['domain', 'store'],
    domain: ['store', 'bus', 'identity'],
    store: [],
    bus: [],
    identity: [],
  },
  agent: {
    connection: ['converge', 'facts', 'metrics', 'terminal', 'host'],
    watch: ['converge', 'host'],
    converge: ['resources', 'journal', 'host'],
    resources: ['host'],
    journal: ['resources', 'host'],
    facts: ['host'],
    metrics: ['host'],
    terminal: ['host'],
    host: [],
  },
  cli: {
    program: [
      ...['verbs', 'completion', 'shapes', 'execution', 'context'],
      ...['transport', 'keys', 'terminal', 'text'],
    ],
    verbs: [
      ...['completion', 'shapes', 'doctor', 'execution', 'context'],
      ...['transport', 'keys', 'terminal', 'text'],
    ],
    completion: ['context', 'text'],
    doctor: ['execution', 'context', 'transport', 'keys', 'text'],
    execution: ['context', 'transport', 'keys', 'terminal', 'text'],
    context: ['transport', 'keys', 'terminal', 'text'],
    terminal: ['transport', 'text'],
    transport: ['keys', 'text'],
    // Schemas for the JSON that commands print.
    shapes: [],
    keys: [],
    text: [],
  },
  console: {
    app: ['pages', 'api', 'parts', 'terminal', 'editor', 'charts'],
    // Pages read data from the API and display it with parts.
    pages: ['api', 'parts', 'terminal', 'editor', 'charts'],
    api: [],
    // Large components that are loaded on demand and receive data as properties.
    terminal: ['parts'],
    editor: ['parts'],
    charts: ['parts'],
    parts: [],
  },
};

/** Layers in an app that every other layer may import, such as the files directly in `src`. They import no layer. */
const shared: Record<string, readonly string[]> = { orchestrator: ['config'] };

const apps = ['orchestrator', 'agent', 'cli', 'console'];
/** Workspaces that test the whole product from outside. They may import everything. */
const anywhere = ['e2e', 'bench'];
const entryFiles = ['main.ts', 'main.tsx'];
const entryFolder = 'compose';
const protocolPackages = [
  ...['zod', 'yaml', 'fastest-levenshtein'],
  // Expressions in modules.
  ...['@marcbachmann/cel-js', '@noble/hashes', 'ipaddr.js', 're2js'],
];

/** Workspaces that several apps use. They import only the protocol. */
const libraries: Record<string, { usedBy: readonly string[]; packages: readonly string[]; node: boolean }> = {
  lib: { usedBy: ['orchestrator', 'agent', 'cli', ...anywhere], packages: [], node: true },
  client: { usedBy: ['cli', 'console', ...anywhere], packages: ['eventsource-parser'], node: false },
};

/**
 * Packages and modules that only some layers of an app may import. If a function is missing, add it to the first of
 * these layers.
 */
const confined: { app: string; layers: readonly string[]; modules: readonly string[]; why: string }[] = [
  {
    app: 'orchestrator',
    layers: ['store'],
    modules: ['kysely', 'pg', 'better-sqlite3'],
    why: 'only the store may contain queries',
  },
  {
    app: 'agent',
    layers: ['host'],
    modules: ['node:child_process', 'child_process'],
    why: 'only host may access the operating system',
  },
  {
    app: 'agent',
    // The journal syncs its own files in the agent's data directory.
    layers: ['host', 'journal'],
    modules: ['node:fs', 'node:fs/promises', 'fs', 'fs/promises'],
    why: 'only host may access the operating system',
  },
];

/**
 * Checks an import.
 * @param from path of the importing file, relative to the root, with `/`
 * @param specifier as written in the import
 * @returns null for an allowed import, otherwise the rule and the remedy
 */
export function judge(from: string, specifier: string): string | null {
  const source = locationOf(from);
  if (anywhere.includes(source.workspace)) return null;
  if (specifier.startsWith('.')) return judgeFile(source, locationOf(posix.join(posix.dirname(from), specifier)));
  if (specifier.startsWith('@muster/')) {
    const target = specifier.split('/')[1] as string;
    return judgeWorkspace(source, target);
  }
  return judgePackage(source, specifier);
}

/**
 * Checks a browser call in the console. Only one layer may send requests, and text must never become HTML.
 * @param name function or property name, such as `fetch` or `innerHTML`
 * @returns null for an allowed call, otherwise the rule and the remedy
 */
export function judgeBrowserCall(from: string, name: string): string | null {
  const { workspace, layer, test } = locationOf(from);
  if (workspace !== 'console' || layer === null || test) return null;
  const where = `console/${layer || posix.basename(from)} → ${name}`;
  if (!isNetwork(name)) return `${where}: agents and operators send text; create elements, and set their text`;
  return layer === 'api'
    ? null
    : `${where}: only console/src/api sends requests to the orchestrator; add a function there and pass in its result`;
}

const ownershipFile = 'agent/src/host/files/ownership.ts';

/**
 * Checks a call that sets an owner or permissions. Only one file in the agent may contain such calls.
 * @param name function name, such as `fchmodSync`
 * @returns null for an allowed call, otherwise the rule and the remedy
 */
export function judgeOwnershipCall(from: string, name: string): string | null {
  const { workspace, layer, test } = locationOf(from);
  if (workspace !== 'agent' || layer === null || test || from === ownershipFile) return null;
  return `${from} → ${name}: only ${ownershipFile} sets owners and permissions; decide them in decideOwnership and call that function`;
}

interface Location {
  path: string;
  /** First folder; empty for files at the root. */
  workspace: string;
  /** Folder below `src`; empty for files directly in it; null outside `src`. */
  layer: string | null;
  test: boolean;
  entry: boolean;
}

function locationOf(path: string): Location {
  const parts = path.split('/');
  const workspace = parts.length > 1 ? (parts[0] as string) : '';
  const inSource = parts[1] === 'src';
  return {
    path,
    workspace,
    layer: inSource ? (parts.length > 3 ? (parts[2] as string) : '') : null,
    test: /\.test\.tsx?$/.test(path) || parts.slice(1).some((part) => part === 'test' || part === 'fixtures'),
    entry: inSource && (parts.length === 3 ? entryFiles.includes(parts[2] as string) : parts[2] === entryFolder),
  };
}

function judgeFile(from: Location, to: Location): string | null {
  const fault = from.workspace === to.workspace ? null : judgeWorkspace(from, to.workspace, to.path);
  if (fault !== null) return fault;
  if (from.test) return null;
  if (to.test && (from.workspace === to.workspace || (to.workspace in libraries && !anywhere.includes(from.workspace))))
    return `${from.path} → test code ${to.path}: move the shared code out of the tests`;
  if (from.workspace !== to.workspace) return null;
  if (to.entry && !from.entry)
    return `${from.path} → ${to.path}: no file may import it, because it wires the parts; pass the values in instead`;
  if (from.entry || from.layer === null) return null;

  const rules = layers[from.workspace];
  if (!rules || from.layer === to.layer) return null;
  const isShared = ({ workspace, layer }: Location) =>
    layer === '' || shared[workspace]?.includes(layer ?? '') === true;
  // package.json belongs to no layer.
  if (isShared(to) || to.path === `${to.workspace}/package.json`) return null;
  const where = `${from.workspace}/${from.layer || 'src'} → ${to.workspace}/${to.layer ?? to.path}`;
  if (isShared(from))
    return `${where}: this file serves every layer and imports none; move it into a layer, or wire it in compose`;
  const allowed = rules[from.layer];
  if (!allowed)
    return `${where}: the folder ${from.layer} has no rule; list the layers it may import in tools/checks/arrows.ts`;
  if (to.layer !== null && allowed.includes(to.layer)) return null;
  return `${where}: ${from.layer} may import ${allowed.length === 0 ? 'no other layer' : allowed.join(', ')}; reverse the import, or pass the function in from compose`;
}

function judgeWorkspace(from: Location, target: string, path?: string): string | null {
  const arrow = `${from.workspace || 'the root'} → ${path ?? target}`;
  if (from.workspace === 'protocol')
    return target === 'protocol' && path === undefined
      ? `${arrow}: inside the protocol, import by relative path`
      : `${arrow}: the protocol imports no other workspace; move the shared code into the protocol`;
  if (target === 'protocol')
    return path === undefined || (from.test && path.startsWith('protocol/test/'))
      ? null
      : `${arrow}: import the protocol by name, '@muster/protocol', to use only its exports`;
  if (target === from.workspace) return `${arrow}: inside a workspace, import by relative path`;
  if (from.workspace in libraries)
    return `${arrow}: ${from.workspace} may import only the workspace protocol; pass in the values that it needs`;
  const library = libraries[target];
  if (library)
    return library.usedBy.includes(from.workspace)
      ? null
      : `${arrow}: only ${library.usedBy.join(', ')} import ${target}`;
  if (apps.includes(from.workspace) && [...apps, ...anywhere, 'tools'].includes(target))
    return `${arrow}: the apps never import each other; move the shared code into the protocol, or use the API`;
  if (from.workspace === 'tools' && target !== '')
    return `${arrow}: tools check and start the product from outside; run it as a program`;
  return null;
}

function judgePackage(from: Location, specifier: string): string | null {
  if (from.test) return null;
  if (from.workspace === 'protocol') {
    if (protocolPackages.includes(packageOf(specifier))) return null;
    return `protocol → ${specifier}: the protocol runs in agents, browsers, and servers, and may import only ${protocolPackages.join(', ')}`;
  }
  const { workspace, layer } = from;
  if (layer === null) return null;
  const library = libraries[workspace];
  if (library && !library.packages.includes(packageOf(specifier)) && !(library.node && specifier.startsWith('node:')))
    return `${workspace} → ${specifier}: ${workspace} runs in ${library.node ? 'every program on Node' : 'browsers and on Node'} and may import only ${[...(library.node ? ['modules of Node'] : []), ...library.packages].join(', ')}; pass in the values that it needs`;
  for (const rule of confined)
    if (workspace === rule.app && !rule.layers.includes(layer) && rule.modules.includes(packageOf(specifier)))
      return `${workspace}/${layer || posix.basename(from.path)} → ${specifier}: ${rule.why}; add a function to ${workspace}/src/${rule.layers[0]} and call that`;
  return null;
}

/** Returns the package in a specifier, without its subpath. Returns built-in modules unchanged. */
function packageOf(specifier: string): string {
  if (specifier.startsWith('node:')) return specifier;
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');
}
