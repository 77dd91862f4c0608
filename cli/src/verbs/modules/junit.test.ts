import { expect, test } from 'vitest';
import { junitXml } from './junit.ts';

test('writes well-formed XML for any name and message', () => {
  const hostile = 'a <b> & "c"\u0000\u001b[31m \uD800 ]]> \r\n\t\uFFFF 🙂';
  const xml = junitXml([
    { name: hostile, cases: [{ name: hostile, seconds: 0.0012, failure: { message: hostile, details: hostile } }] },
  ]);
  const escaped = 'a &lt;b&gt; &amp; &quot;c&quot;\uFFFD\uFFFD[31m \uFFFD ]]&gt; &#13;&#10;&#9;\uFFFD 🙂';
  const inText = 'a &lt;b&gt; &amp; "c"\uFFFD\uFFFD[31m \uFFFD ]]&gt; &#13;\n\t\uFFFD 🙂';
  expect(xml).toBe(`<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="1" failures="1" errors="0" time="0.001">
  <testsuite name="${escaped}" tests="1" failures="1" errors="0" time="0.001">
    <testcase name="${escaped}" classname="${escaped}" time="0.001"><failure message="${escaped}" type="mismatch">${inText}</failure></testcase>
  </testsuite>
</testsuites>
`);
});
