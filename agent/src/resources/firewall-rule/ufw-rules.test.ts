import { expect, test } from 'vitest';
import { type Body, rulesOf } from './rules.ts';
import { parseUfw, type RuleFiles, renderUfw } from './ufw-rules.ts';

const before = '*filter\n:ufw-user-input - [0:0]\n:ufw-user-output - [0:0]\n';
const after = '\n### END RULES ###\n\n### LOGGING ###\n### END LOGGING ###\nCOMMIT\n';
const file = (rules: string): string => `${before}### RULES ###\n${rules}${after}`;
const ssh =
  '\n### tuple ### allow tcp 22 0.0.0.0/0 any 0.0.0.0/0 in comment=737368\n-A ufw-user-input -p tcp --dport 22 -j ACCEPT\n';

/** Written by ufw 0.36.2 for `ufw COMMAND comment 'muster: NAME'`. */
const written: [string, Partial<Body>, string, string][] = [
  [
    "limit 2222/tcp comment 'muster: web: own'",
    { ports: ['2222'], action: 'limit', comment: 'own' },
    '\n### tuple ### limit tcp 2222 0.0.0.0/0 any 0.0.0.0/0 in comment=6d75737465723a207765623a206f776e\n-A ufw-user-input -p tcp --dport 2222 -m conntrack --ctstate NEW -m recent --set\n-A ufw-user-input -p tcp --dport 2222 -m conntrack --ctstate NEW -m recent --update --seconds 30 --hitcount 6 -j ufw-user-limit\n-A ufw-user-input -p tcp --dport 2222 -j ufw-user-limit-accept\n',
    '\n### tuple ### limit tcp 2222 ::/0 any ::/0 in comment=6d75737465723a207765623a206f776e\n-A ufw6-user-input -p tcp --dport 2222 -m conntrack --ctstate NEW -m recent --set\n-A ufw6-user-input -p tcp --dport 2222 -m conntrack --ctstate NEW -m recent --update --seconds 30 --hitcount 6 -j ufw6-user-limit\n-A ufw6-user-input -p tcp --dport 2222 -j ufw6-user-limit-accept\n',
  ],
  [
    "deny proto tcp from 192.0.2.0/24 to any port 80,443,8000:8010 comment 'muster: web'",
    { ports: ['80', '443', '8000-8010'], source: ['192.0.2.0/24'], action: 'drop' },
    '\n### tuple ### deny tcp 80,443,8000:8010 0.0.0.0/0 any 192.0.2.0/24 in comment=6d75737465723a20776562\n-A ufw-user-input -p tcp -m multiport --dports 80,443,8000:8010 -s 192.0.2.0/24 -j DROP\n',
    '',
  ],
  [
    "reject out proto tcp to 192.0.2.7 comment 'muster: web'",
    { direction: 'out', protocol: 'tcp', destination: ['192.0.2.7'], action: 'reject' },
    '\n### tuple ### reject tcp any 192.0.2.7 any 0.0.0.0/0 out comment=6d75737465723a20776562\n-A ufw-user-output -p tcp -d 192.0.2.7 -j REJECT --reject-with tcp-reset\n',
    '',
  ],
  [
    "reject out to 2001:db8::/32 comment 'muster: web'",
    { direction: 'out', destination: ['2001:db8::/32'], action: 'reject' },
    '',
    '\n### tuple ### reject any any 2001:db8::/32 any ::/0 out comment=6d75737465723a20776562\n-A ufw6-user-output -d 2001:db8::/32 -j REJECT\n',
  ],
];

test.each(written)('writes and reads the rules of `ufw %s`', (_command, body, rules4, rules6) => {
  const rules = new Map([['web', rulesOf({ name: 'web', ...body })]]);
  const files: RuleFiles = { 4: file(ssh), 6: file('') };
  const rendered = renderUfw(files, rules);
  expect(rendered).toEqual({ 4: file(rules4 + ssh), 6: file(rules6) });
  expect(parseUfw(rendered)).toEqual(rules);
  expect(renderUfw(rendered, new Map())).toEqual(files);
});

test('divides more than 15 ports among rules, and orders rules by their content', () => {
  const ports = Array.from({ length: 20 }, (_, i) => String(1000 + 2 * i));
  const rules = new Map([
    ['rest', rulesOf({ name: 'rest', action: 'drop' })],
    ['many', rulesOf({ name: 'many', ports: [...ports, '2000-2010'], comment: 'a: b' })],
  ]);
  const rendered = renderUfw({ 4: file(ssh), 6: null }, rules);
  expect(
    Array.from(rendered[4].matchAll(/tuple ### (\S+ \S+) (\S+)/g), ([, verb, port]) => [verb, port?.length]),
  ).toEqual([
    ['allow tcp', 15 * 5 - 1],
    ['allow tcp', 5 * 5 + 9],
    ['deny any', 3],
    ['allow tcp', 2],
  ]);
  expect(parseUfw(rendered)).toEqual(rules);
});

test('keeps the rules of others, even in a file that ufw has not rewritten since its installation', () => {
  const shipped = `${before}### RULES ###\n-A ufw-user-limit -j REJECT\nCOMMIT\n`;
  const own = (tuple: string) => `\n### tuple ### ${tuple} comment=6d75737465723a20776562\n`;
  const others = `${own('allow tcp 22 0.0.0.0/0 any 0.0.0.0/0 in_eth0')}-A ufw-user-input -i eth0 -p tcp --dport 22 -j ACCEPT\n`;
  const rules = new Map([['web', rulesOf({ name: 'web', ports: ['80'] })]]);
  for (const text of [
    shipped,
    file(others + ssh),
    file(`${own('route:allow any any 0.0.0.0/0 any 0.0.0.0/0 in')}${ssh}`),
  ]) {
    expect(parseUfw({ 4: text, 6: null })).toEqual(new Map());
    expect(renderUfw(renderUfw({ 4: text, 6: null }, rules), new Map())[4]).toBe(text);
  }
});

test('shows a rule that is missing for one family', () => {
  const rules = new Map([['web', rulesOf({ name: 'web', ports: ['80'] })]]);
  const { 4: text } = renderUfw({ 4: file(ssh), 6: file('') }, rules);
  const half = parseUfw({ 4: text, 6: file('') });
  expect(half.get('web')).toEqual([{ direction: 'in', text: 'tcp dport 80 accept (only IPv4)', comment: null }]);
  expect(parseUfw(renderUfw({ 4: file(ssh), 6: file('') }, half))).toEqual(half);
});
