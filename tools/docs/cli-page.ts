import { type JsonSchema, typeText } from './api-schema.ts';

/** A command or noun, as described by cli/src/program/every-verb.ts. */
export interface CliVerb {
  words: string;
  description: string;
  group: string;
  launched: boolean;
  usage: string;
  arguments: { name: string; description: string }[];
  options: { flags: string; description: string; default: unknown }[];
  prose: string;
  examples: string[];
  json: { form: 'document' | 'lines'; schema: JsonSchema & { $defs?: Record<string, JsonSchema> } } | null;
  verbs: CliVerb[];
}

export interface CliDescription {
  helps: Record<string, string>;
  program: CliVerb;
  exits: { code: number; meaning: string }[];
  document: unknown;
}

/** Escapes text so that Markdown does not interpret it as HTML or as a table cell separator. */
const escaped = (text: string): string => text.replaceAll('|', '\\|').replaceAll('<', '&lt;').replaceAll('\n', ' ');
const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** Returns all commands without subcommands, in the order of the help. */
const leavesOf = (verb: CliVerb): CliVerb[] => (verb.verbs.length === 0 ? [verb] : verb.verbs.flatMap(leavesOf));

const optionTable = (options: CliVerb['options']): string[] => [
  '| option | description | default |',
  '|---|---|---|',
  ...options.map(
    (option) =>
      `| \`${option.flags}\` | ${escaped(option.description)} | ${option.default === null ? '' : `\`${option.default}\``} |`,
  ),
];

/** Returns a short description of the allowed values, with links to the objects in docs/api.md. */
function shapeText(schema: JsonSchema, known: ReadonlySet<string>, definitions: Record<string, JsonSchema>): string {
  const inner = (each: JsonSchema) => shapeText(each, known, definitions);
  const note = schema.description === undefined ? '' : ` (${escaped(schema.description)})`;
  const name = schema.$ref?.replace('#/$defs/', '');
  if (name !== undefined) {
    if (known.has(name)) return `[${name}](api.md#${name.toLowerCase()}-object)${note}`;
    return inner({ ...definitions[name], ...(schema.description ? { description: schema.description } : {}) });
  }
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices) return `${choices.map(inner).join('; or ')}${note}`;
  if (schema.items) return `a list of ${inner(schema.items)}${note}`;
  if (schema.properties && Object.keys(schema.properties).length > 0) {
    const fields = Object.entries(schema.properties).map(([key, field]) => {
      const opened = field.$ref ?? field.items?.$ref ?? field.items?.properties;
      return `\`${key}\`${opened ? `: ${inner(field)}` : ''}`;
    });
    return `an object with ${fields.join(', ')}${note}`;
  }
  return `${typeText(schema)}${note}`;
}

function jsonText({ json, launched }: CliVerb, known: ReadonlySet<string>): string[] {
  if (launched) return [];
  if (json === null) return ['This verb does not print JSON, even with `--json`.', ''];
  const text = shapeText(json.schema, known, json.schema.$defs ?? {});
  return [
    `With \`--json\`: ${json.form === 'lines' ? 'one value per line, as soon as it is available: ' : ''}${text}.`,
    '',
  ];
}

function verbSection(verb: CliVerb, known: ReadonlySet<string>): string[] {
  const explained = verb.arguments.filter(({ description }) => description !== '');
  const prose = verb.prose
    .replaceAll(/([^\n])\n(?!\n)/g, '$1 ')
    .replaceAll(/ {2,}/g, ' ')
    .trim();
  return [
    `### muster ${verb.words}`,
    '',
    capital(verb.description).replace(/\.?$/, '.'),
    '',
    '```text',
    `muster ${verb.words} ${verb.launched ? '[options]' : verb.usage}`,
    '```',
    '',
    ...explained.map(({ name, description }) => `- \`${name}\`: ${escaped(description)}`),
    ...(explained.length === 0 ? [] : ['']),
    ...(verb.options.length === 0 || verb.launched ? [] : [...optionTable(verb.options), '']),
    ...(prose === '' ? [] : [escaped(prose.replaceAll('\n\n', '\u0000')).replaceAll('\u0000', '\n\n'), '']),
    ...(verb.examples.length === 0 ? [] : ['```sh', ...verb.examples, '```', '']),
    ...jsonText(verb, known),
  ];
}

const linkTo = (verb: CliVerb, text: string): string => `[${text}](#muster-${verb.words.replaceAll(' ', '-')})`;

/**
 * Generates docs/cli-reference.md.
 * @param apiPage docs/api.md, for links to its objects
 */
export function cliPage({ program, exits }: CliDescription, apiPage: string): string {
  const known = new Set([...apiPage.matchAll(/^### (\w+) object$/gm)].map(([, name]) => name as string));
  const groups = Map.groupBy(program.verbs, ({ group }) => group);
  const overview = [...groups].flatMap(([group, nouns]) => [
    `**${group}**`,
    '',
    ...nouns.map((noun) =>
      noun.verbs.length === 0
        ? `- ${linkTo(noun, noun.words)}: ${escaped(noun.description)}`
        : `- ${noun.words} (${leavesOf(noun)
            .map((verb) => linkTo(verb, verb.words.slice(noun.words.length + 1)))
            .join(', ')}): ${escaped(noun.description)}`,
    ),
    '',
  ]);
  return [
    '# Command line reference',
    '',
    'Every verb of `muster` with its arguments, options, examples, and its output for scripts. [The command line](cli.md)',
    'explains what they have in common. `node tools/checks/docs.ts --write` generates this page.',
    '',
    '## Verbs',
    '',
    ...overview,
    '## Options of every verb',
    '',
    ...optionTable(program.options),
    '',
    '## Exit codes',
    '',
    '| exit code | meaning |',
    '|---|---|',
    ...exits.map(({ code, meaning }) => `| ${code} | ${meaning} |`),
    '',
    ...program.verbs.flatMap((noun) => [
      `## ${capital(noun.words)}`,
      '',
      ...leavesOf(noun).flatMap((verb) => verbSection(verb, known)),
    ]),
  ]
    .join('\n')
    .replace(/\n+$/, '\n');
}
