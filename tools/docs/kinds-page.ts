import {
  executableKinds,
  type KindField,
  kindExample,
  kindFields,
  kinds,
  parseModule,
  type ResourceType,
  resourceTypes,
} from '@muster/protocol/module';

/** Generates the page that describes every resource kind, from the schema that validates resources. */

/**
 * Returns the example.
 * @throws Error if it is not a valid module
 */
function checkedExample(type: ResourceType): string {
  const clause = kinds[type].platforms.map((platform) => `{ platform: ${platform} }`).join(', ');
  const example = kindExample(type);
  const parsed = parseModule(`name: example\nsupports: [${clause}]\nresources:\n${example}\n`);
  if (!parsed.ok) throw new Error(`the example of ${type}: ${parsed.faults.map(({ message }) => message).join('; ')}`);
  return example;
}

function valueText({ type, values, minimum, maximum }: KindField): string {
  if (type === 'integer') return `whole number, ${minimum} to ${maximum}`;
  if (type === 'choice') return (values ?? []).map((value) => `\`${value}\``).join(', ');
  const words = { text: 'text', boolean: '`true`, `false`', list: 'list of strings', map: 'mapping of names to text' };
  return { ...words, any: 'any value except null', ids: 'list of ids' }[type];
}

function row(field: KindField): string {
  const { name, required, description, sensitive } = field;
  return `| ${required ? `**\`${name}\`**` : `\`${name}\``} | ${valueText(field)} | ${description.replaceAll('|', '\\|')}${sensitive ? '; never shown' : ''} |`;
}

function section(type: ResourceType): string[] {
  const { description, platforms, exclusive } = kinds[type];
  const now = executableKinds.has(type) ? '' : ' Not supported by agents yet.';
  return [
    `## ${type}`,
    '',
    `${description}. For ${platforms.join(', ')}.${now}`,
    '',
    '| field | value | description |',
    '|---|---|---|',
    ...kindFields(type).map(row),
    '',
    ...exclusive.map((group) => `Only one of ${group.map((name) => `\`${name}\``).join(', ')}.`),
    ...(exclusive.length > 0 ? [''] : []),
    '```yaml',
    checkedExample(type),
    '```',
    '',
  ];
}

/** Returns the page in Markdown. */
export function kindsPage(): string {
  const now = resourceTypes.filter((type) => executableKinds.has(type)).map((type) => `[\`${type}\`](#${type})`);
  return [
    '# Resource kinds',
    '',
    'The resource kinds that a [module](modules.md) can contain. `node tools/checks/docs.ts --write` generates this page from the schema that',
    'checks modules. `muster kinds list` and `muster kinds show NAME` print the same from your orchestrator.',
    '',
    `Agents of this release support ${now.join(', ')}, on Linux. Modules may contain the other kinds, and uploads check them, but an agent`,
    'reports each resource of such a kind as not supported yet.',
    '',
    'Fields in bold are required. Other fields have no default: if a field is absent or null, Muster does not change that aspect of',
    'the machine. Without `ensure`, a resource is `present`.',
    '',
    ...resourceTypes.flatMap(section),
  ]
    .join('\n')
    .trimEnd()
    .concat('\n');
}
