import { posix } from 'node:path';
import { isNetwork } from './browser-calls.ts';

/**
 * Which file may import which, decided on paths alone.
 *
 * Everything may import the protocol. The apps never import each other. Inside an app the layers below say who knows
 * whom; what is not listed is forbidden. `compose.ts` and `main.ts` wire, so they know every layer and no layer knows them.
 */
const layers: Record<string, Record<string, readonly string[]>> = {
  orchestrator: {
    http: ['domain', 'bus', 'identity', 'admission'],
    gateway: ['domain', 'bus', 'identity', 'admission'],
    // Which connections a port takes, before anything is known of who is at the other end.
    admission: [],
    schedule: ['domain', 'bus'],
    // What is done to a database while no orchestrator runs on it: there is no domain then.
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
  console: {
    app: ['pages', 'api', 'parts', 'terminal', 'editor', 'charts'],
    // They take data from the API, and show it with parts.
    pages: ['api', 'parts', 'terminal', 'editor', 'charts'],
    api: [],
    // What is heavy, and comes when it is needed. It is handed what it shows.
    terminal: ['parts'],
    editor: ['parts'],
    charts: ['parts'],
    parts: [],
  },
};

const apps = ['orchestrator', 'agent', 'cli', 'console'];
/** These hold the whole together from outside, so they may look anywhere. */
const anywhere = ['e2e', 'bench'];
const entryFiles = ['main.ts', 'main.tsx', 'compose.ts'];
const protocolPackages = ['zod', 'yaml', 'fastest-levenshtein'];

/** Packages and modules that only these layers of an app may import; the first is where what is missing belongs. */
const confined: { app: string; layers: readonly string[]; modules: readonly string[]; why: string }[] = [
  {
    app: 'orchestrator',
    layers: ['store'],
    modules: ['kysely', 'pg', 'better-sqlite3'],
    why: 'queries live in the store only',
  },
  {
    app: 'agent',
    layers: ['host'],
    modules: ['node:child_process', 'child_process'],
    why: 'host is the only access to the operating system',
  },
  {
    app: 'agent',
    // The journal syncs files of its own, in the agent's data directory.
    layers: ['host', 'journal'],
    modules: ['node:fs', 'node:fs/promises', 'fs', 'fs/promises'],
    why: 'host is the only access to the operating system',
  },
];

/**
 * Judges one import.
 * @param from path of the importing file, relative to the root, with `/`
 * @param specifier what it imports, as written
 * @returns null when the arrow is right, else which arrow it is and what to do
 */
export function judge(from: string, specifier: string): string | null {
  const source = placeOf(from);
  if (anywhere.includes(source.workspace)) return null;
  if (specifier.startsWith('.')) return judgeFile(source, placeOf(posix.join(posix.dirname(from), specifier)));
  if (specifier.startsWith('@muster/')) {
    const target = specifier.split('/')[1] as string;
    return judgeWorkspace(source, target);
  }
  return judgePackage(source, specifier);
}

/**
 * Judges what a file of the console asks of the browser: the API is asked in one place, and nothing makes text into a page.
 * @param name as `fetch` or `innerHTML`
 * @returns null when it may
 */
export function judgeBrowserCall(from: string, name: string): string | null {
  const { workspace, layer, test } = placeOf(from);
  if (workspace !== 'console' || layer === null || test) return null;
  const where = `console/${layer || posix.basename(from)} → ${name}`;
  if (!isNetwork(name))
    return `${where}: what comes from agents and operators is text; make elements, and put it into them as text`;
  return layer === 'api'
    ? null
    : `${where}: only console/src/api asks the orchestrator; add a function there and hand in what it gives`;
}

const ownershipFile = 'agent/src/host/files/ownership.ts';

/**
 * Judges a call that sets an owner or permissions: what decides and what acts are each in one place of the agent.
 * @param name as `fchmodSync`
 * @returns null when it may
 */
export function judgeOwnershipCall(from: string, name: string): string | null {
  const { workspace, layer, test } = placeOf(from);
  if (workspace !== 'agent' || layer === null || test || from === ownershipFile) return null;
  return `${from} → ${name}: only ${ownershipFile} sets owners and permissions; let decideOwnership decide them and call that`;
}

interface Place {
  path: string;
  /** First folder; empty for files at the root. */
  workspace: string;
  /** Folder below `src`; `''` for files directly in it; null outside `src`. */
  layer: string | null;
  test: boolean;
  entry: boolean;
}

function placeOf(path: string): Place {
  const parts = path.split('/');
  const workspace = parts.length > 1 ? (parts[0] as string) : '';
  const inSource = parts[1] === 'src';
  return {
    path,
    workspace,
    layer: inSource ? (parts.length > 3 ? (parts[2] as string) : '') : null,
    test: /\.test\.tsx?$/.test(path) || parts.slice(1).some((part) => part === 'test' || part === 'fixtures'),
    entry: inSource && parts.length === 3 && entryFiles.includes(parts[2] as string),
  };
}

function judgeFile(from: Place, to: Place): string | null {
  if (from.workspace !== to.workspace) return judgeWorkspace(from, to.workspace, to.path);
  if (from.test) return null;
  if (to.test) return `${from.path} → test code ${to.path}: move what both need out of the tests`;
  if (to.entry && !from.entry)
    return `${from.path} → ${to.path}: it wires the parts and nothing depends on it; hand in what is needed from there`;
  if (from.entry || from.layer === null) return null;

  const rules = layers[from.workspace];
  if (!rules || from.layer === to.layer) return null;
  // Files directly in `src` serve every layer, so they may lean on none; package.json is nobody's.
  if (to.layer === '' || to.path === `${to.workspace}/package.json`) return null;
  const where = `${from.workspace}/${from.layer || 'src'} → ${to.workspace}/${to.layer ?? to.path}`;
  if (from.layer === '')
    return `${where}: files directly in src serve every layer and know none; move the file into a layer, or wire it in compose.ts`;
  const allowed = rules[from.layer];
  if (!allowed) return `${where}: the folder ${from.layer} is not known; give it its arrows in tools/checks/arrows.ts`;
  if (to.layer !== null && allowed.includes(to.layer)) return null;
  return `${where}: ${from.layer} may import ${allowed.length === 0 ? 'no other layer' : allowed.join(', ')}; turn the arrow round, or hand the function in from compose.ts`;
}

function judgeWorkspace(from: Place, target: string, path?: string): string | null {
  const arrow = `${from.workspace || 'the root'} → ${path ?? target}`;
  if (from.workspace === 'protocol')
    return target === 'protocol' && path === undefined
      ? `${arrow}: inside the protocol, import by relative path`
      : `${arrow}: the protocol imports nothing of the product; move what both need into the protocol`;
  if (target === 'protocol')
    return path === undefined
      ? null
      : `${arrow}: import the protocol by name, '@muster/protocol', so that only what it exports is used`;
  if (target === from.workspace) return `${arrow}: inside a workspace, import by relative path`;
  if (apps.includes(from.workspace) && [...apps, ...anywhere, 'tools'].includes(target))
    return `${arrow}: the apps never import each other; move what both need into the protocol, or talk over the API`;
  if (from.workspace === 'tools' && target !== '')
    return `${arrow}: tools check and start the product from outside; run it as a program`;
  return null;
}

function judgePackage(from: Place, specifier: string): string | null {
  if (from.test) return null;
  if (from.workspace === 'protocol') {
    if (protocolPackages.includes(packageOf(specifier))) return null;
    return `protocol → ${specifier}: the protocol runs in agents, browsers and servers alike and imports only ${protocolPackages.join(', ')}`;
  }
  const { workspace, layer } = from;
  if (layer === null) return null;
  for (const rule of confined)
    if (workspace === rule.app && !rule.layers.includes(layer) && rule.modules.includes(packageOf(specifier)))
      return `${workspace}/${layer || posix.basename(from.path)} → ${specifier}: ${rule.why}; add a function to ${workspace}/src/${rule.layers[0]} and call that`;
  return null;
}

/** The package of a specifier without its subpath; built-in modules stay as they are. */
function packageOf(specifier: string): string {
  if (specifier.startsWith('node:')) return specifier;
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');
}
