import {
  type Alias,
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  type Node,
  type Pair,
  visit,
  type YAMLMap,
} from 'yaml';
import { Abandoned, composeDocument } from '../../source/yaml.ts';

/** Checks the shape of a Compose file (https://github.com/compose-spec/compose-spec). Compose checks the rest. */

/** Maximum number of UTF-16 code units. */
const maximumLength = 256 * 1024;
/** Maximum number of bytes in UTF-8 of an accepted Compose file. */
export const maximumComposeBytes = 3 * maximumLength;

const sections = ['version', 'name', 'services', 'networks', 'volumes', 'configs', 'secrets'];

/** Keys of a service, of its `extends`, of the entries of its `env_file`, of networks, and of volumes that are checked. */
const checkedKeys = [
  'build',
  'extends',
  'image',
  'file',
  'env_file',
  'label_file',
  'path',
  'name',
  'container_name',
  'provider',
];

/** Reads a document without expanding aliases. Takes linear time. */
class Reader {
  readonly root: Node | null;
  readonly #targets = new Map<Alias, Node>();
  readonly #known = new Map<YAMLMap, Map<string, Node | null>>();
  /** Whether the text `env_file` occurs, as a key or where an alias may make it one. */
  readonly hasEnvironmentFiles: boolean;

  constructor(document: Document.Parsed) {
    this.root = document.contents;
    let hasEnvironmentFiles = false;
    const anchors = new Map<string, Node>();
    visit(document, {
      Alias: (_key, alias) => {
        const target = anchors.get(alias.source);
        if (target !== undefined) this.#targets.set(alias, target);
      },
      Value: (_key, node) => {
        if (node.anchor !== undefined) anchors.set(node.anchor, node);
        if (isScalar(node) && node.value === 'env_file') hasEnvironmentFiles = true;
      },
    });
    this.hasEnvironmentFiles = hasEnvironmentFiles;
  }

  find(node: unknown): Node | null {
    return isAlias(node) ? (this.#targets.get(node) ?? null) : ((node as Node | null) ?? null);
  }

  keyOf({ key }: Pair): string {
    const found = this.find(key);
    return isScalar(found) ? String(found.value) : '';
  }

  /** Returns the checked keys of a mapping, including those that it merges with `<<`. */
  valuesOf(map: YAMLMap): ReadonlyMap<string, Node | null> {
    const known = this.#known.get(map);
    if (known !== undefined) return known;
    const values = new Map<string, Node | null>();
    // Stored before it is complete, because a mapping may merge itself.
    this.#known.set(map, values);
    for (const pair of map.items) {
      const key = this.keyOf(pair);
      if (checkedKeys.includes(key)) values.set(key, this.find(pair.value));
    }
    for (const merged of map.items
      .filter((pair) => this.keyOf(pair) === '<<')
      .flatMap(({ value }) => this.#maps(value)))
      for (const [key, value] of this.valuesOf(merged)) if (!values.has(key)) values.set(key, value);
    return values;
  }

  /** Returns the mappings that the value of `<<` names. */
  #maps(value: unknown): YAMLMap[] {
    const found = this.find(value);
    const nodes = isSeq(found) ? found.items.map((item) => this.find(item)) : [found];
    return nodes.filter((node) => isMap(node));
  }
}

const isText = (node: Node | null | undefined): boolean =>
  isScalar(node) && typeof node.value === 'string' && node.value.trim() !== '';

/** Reports whether services may get variables from files, whose text Compose quotes in errors. */
export function readsEnvironmentFiles(text: string): boolean {
  try {
    return new Reader(composeDocument(text, () => {})).hasEnvironmentFiles;
  } catch (error) {
    if (!(error instanceof Abandoned)) throw error;
    return true;
  }
}

/** The references of a Compose file. */
interface ComposeReferences {
  /** Paths of the files from which services get variables or labels, as written. */
  files: string[];
  /** The names of objects and images that contain a variable, such as "`image` of the service web". */
  withVariables: string[];
}

/** Returns the references of a Compose file; none if it is not YAML. */
export function composeReferences(text: string): ComposeReferences {
  try {
    const reader = new Reader(composeDocument(text, () => {}));
    const services = membersOf('services', reader);
    const withVariables = [
      ...withVariable('service', services, 'image'),
      ...withVariable('service', services, 'container_name'),
      ...withVariable('network', membersOf('networks', reader), 'name'),
      ...withVariable('volume', membersOf('volumes', reader), 'name'),
    ];
    return { files: filesOf(services, reader), withVariables };
  } catch (error) {
    if (!(error instanceof Abandoned)) throw error;
    return { files: [], withVariables: [] };
  }
}

/** A service, network, or volume. */
interface Member {
  name: string;
  values: ReadonlyMap<string, Node | null>;
}

function membersOf(section: 'services' | 'networks' | 'volumes', reader: Reader): Member[] {
  const { root } = reader;
  const declared = isMap(root) ? root.items.find((pair) => reader.keyOf(pair) === section) : undefined;
  const members = reader.find(declared?.value);
  if (!isMap(members)) return [];
  return members.items.flatMap((pair) => {
    const member = reader.find(pair.value);
    return isMap(member) ? [{ name: reader.keyOf(pair), values: reader.valuesOf(member) }] : [];
  });
}

const withVariable = (noun: string, members: readonly Member[], key: string): string[] =>
  members.flatMap(({ name, values }) => {
    const value = values.get(key);
    return isScalar(value) && String(value.value).includes('$') ? [`\`${key}\` of the ${noun} ${name}`] : [];
  });

function filesOf(services: readonly Member[], reader: Reader): string[] {
  // Services may share a list through an alias.
  const lists = new Set(services.flatMap(({ values }) => [values.get('env_file'), values.get('label_file')]));
  const entries = [...lists].flatMap((list) => (isSeq(list) ? list.items.map((item) => reader.find(item)) : [list]));
  const paths = entries.map((entry) => (isMap(entry) ? reader.valuesOf(entry).get('path') : entry));
  return [...new Set(paths.flatMap((path) => (isScalar(path) && typeof path.value === 'string' ? [path.value] : [])))];
}

/** Returns why a Compose file is refused; undefined if its shape is correct. Aliases are not expanded. */
export function composeFileFault(text: string): string | undefined {
  if (text.length > maximumLength) return `must be at most ${maximumLength / 1024} KiB long`;
  if (!/^(?!\s*#)\s*\S/m.test(text)) return 'must have `services`';
  let fault: string | undefined;
  try {
    const document = composeDocument(text, (message) => {
      fault ??= message;
    });
    return fileFault(new Reader(document));
  } catch (error) {
    if (!(error instanceof Abandoned)) throw error;
    return fault ?? 'must be a Compose file in YAML';
  }
}

function fileFault(reader: Reader): string | undefined {
  const { root } = reader;
  if (!isMap(root)) return 'must be a Compose file in YAML: a mapping with `services`';
  for (const pair of root.items) {
    const key = reader.keyOf(pair);
    if (key === 'include') return '`include` is not supported: declare everything in one file';
    if (!sections.includes(key) && !key.startsWith('x-'))
      return `must not have the key ${JSON.stringify(key.slice(0, 60))}: a Compose file has ${sections.join(', ')}, and x-…`;
  }
  const declared = root.items.filter((pair) => reader.keyOf(pair) === 'services');
  if (declared.length > 1) return 'must not have `services` twice';
  const services = reader.find(declared[0]?.value);
  if (!isMap(services) || services.items.length === 0)
    return 'must have `services`, a mapping with at least one service';
  const names = new Set<string>();
  for (const pair of services.items) {
    const name = reader.keyOf(pair);
    if (!/^[A-Za-z0-9._-]{1,100}$/.test(name))
      return 'must have services with names of up to 100 letters, digits, "_", "." and "-"';
    if (names.has(name)) return `must not declare the service ${name} twice`;
    names.add(name);
    const service = reader.find(pair.value);
    if (!isMap(service)) return `must declare the service ${name} as a mapping`;
    const wrong = serviceFault(name, service, reader);
    if (wrong !== undefined) return wrong;
  }
  const file = filesOf(membersOf('services', reader), reader).find((path) => /^~|\$/.test(path));
  if (file !== undefined)
    return `must name the files of \`env_file\` and \`label_file\` without variables and "~": ${JSON.stringify(file.slice(0, 60))}`;
  return undefined;
}

function serviceFault(name: string, service: YAMLMap, reader: Reader): string | undefined {
  const values = reader.valuesOf(service);
  if (values.has('build'))
    return `must not build the service ${name}: push its image to a registry, and name it in \`image\``;
  if (values.has('provider'))
    return `must not leave the service ${name} to a \`provider\`: that is a program that Compose would run as root`;
  const base = values.get('extends');
  if (isMap(base) && reader.valuesOf(base).has('file'))
    return `must not extend the service ${name} from another file: declare everything in one file`;
  const isInherited = base !== undefined && !values.has('image');
  if (!isInherited && !isText(values.get('image'))) return `must name the \`image\` of the service ${name}`;
  return undefined;
}
