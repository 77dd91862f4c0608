/** Formats test results as JUnit XML. The format has only four elements, so no XML library is used. */

export interface JunitCase {
  readonly name: string;
  readonly seconds: number;
  /** Undefined if the test passed. */
  readonly failure?: { readonly message: string; readonly details: string };
}

export interface JunitSuite {
  /** File that contains the tests. */
  readonly name: string;
  readonly cases: readonly JunitCase[];
}

// Characters that XML 1.0 does not allow, even as references, including unpaired surrogates.
const notInXml = /[^\t\n\r\u{20}-\u{D7FF}\u{E000}-\u{FFFD}\u{10000}-\u{10FFFF}]/gu;
const references: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  '\t': '&#9;',
  '\n': '&#10;',
  '\r': '&#13;',
};

const inText = (text: string): string =>
  text.replace(notInXml, '\uFFFD').replace(/[&<>\r]/g, (one) => references[one] ?? one);
const inAttribute = (text: string): string =>
  text.replace(notInXml, '\uFFFD').replace(/[&<>"\t\n\r]/g, (one) => references[one] ?? one);

const element = (name: string, attributes: Readonly<Record<string, string | number>>, content: string): string => {
  const written = Object.entries(attributes).map(([key, value]) => ` ${key}="${inAttribute(String(value))}"`);
  return content === '' ? `<${name}${written.join('')}/>` : `<${name}${written.join('')}>${content}</${name}>`;
};

const secondsOf = (cases: readonly JunitCase[]): string =>
  cases.reduce((sum, { seconds }) => sum + seconds, 0).toFixed(3);

const counts = (cases: readonly JunitCase[]) => ({
  tests: cases.length,
  failures: cases.filter(({ failure }) => failure !== undefined).length,
  errors: 0,
  time: secondsOf(cases),
});

/** Returns the results as XML 1.0 in UTF-8. */
export function junitXml(suites: readonly JunitSuite[]): string {
  const suiteElements = suites.map(({ name, cases }) => {
    const caseElements = cases.map((one) => {
      const { failure } = one;
      const inner =
        failure === undefined
          ? ''
          : element('failure', { message: failure.message, type: 'mismatch' }, inText(failure.details));
      return `    ${element('testcase', { name: one.name, classname: name, time: one.seconds.toFixed(3) }, inner)}\n`;
    });
    return `  ${element('testsuite', { name, ...counts(cases) }, `\n${caseElements.join('')}  `)}\n`;
  });
  const all = suites.flatMap(({ cases }) => cases);
  return `<?xml version="1.0" encoding="UTF-8"?>\n${element('testsuites', counts(all), `\n${suiteElements.join('')}`)}\n`;
}
