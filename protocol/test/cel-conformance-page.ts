import type { ConformanceCase } from './cel-conformance.ts';

/** Sections about features that expressions do not have. */
const absent: Readonly<Record<string, string>> = {
  block_ext: 'no `cel.block`, which only optimizers write',
  dynamic: 'no Protocol Buffers; these cases need values of well-known types',
  encoders_ext: 'no `base64.encode`: write `base64(…)`; no `base64.decode`',
  enums: 'no enums',
  macros2: 'no macros with two variables: use `entries(…)`',
  math_ext: 'no functions of `math`',
  namespace: 'no containers',
  optionals: 'no optional values: use `default` and `omit`',
  proto2: 'no Protocol Buffers',
  proto2_ext: 'no Protocol Buffers',
  proto3: 'no Protocol Buffers',
  wrappers: 'no Protocol Buffers',
};

const code = (text: string): string => `\`${text.replaceAll('`', "'")}\``;

function section([name, cases]: [string, ConformanceCase[]]): string[] {
  const failed = cases.filter(({ passes }) => !passes);
  if (failed.length === 0 || Object.hasOwn(absent, name)) return [];
  const groups = Map.groupBy(failed, ({ group }) => group);
  return [
    `### ${name}`,
    [...groups].map(([group, inGroup]) => `- ${group}: ${inGroup.map((one) => code(one.name)).join(', ')}`).join('\n'),
  ];
}

/** Returns the page that lists the test cases of the CEL conformance suite that expressions do not pass. */
export function conformancePage(cases: readonly ConformanceCase[]): string {
  const sections = [...Map.groupBy(cases, (one) => one.section)];
  const rows = sections.map(([name, of]) => {
    const passed = of.filter(({ passes }) => passes).length;
    return `| ${name} | ${passed} of ${of.length} | ${absent[name] ?? ''} |`;
  });
  const passed = cases.filter(({ passes }) => passes).length;
  return `${[
    '# Conformance of expressions to CEL',
    `The [conformance suite](https://github.com/google/cel-spec/tree/master/tests/simple) of the Common Expression Language has
${cases.length} cases. The [expressions](expressions.md) of modules pass ${passed} of them. Others need Protocol Buffers, enums, optional values,
or extensions, which modules do not have. The tests run the suite and compare this page with the results.`,
    ['| section | passes | reason |', '|---|---|---|', ...rows].join('\n'),
    '## Cases that do not pass',
    'Cases in sections with a reason above are omitted.',
    ...sections.flatMap(section),
  ].join('\n\n')}\n`;
}
