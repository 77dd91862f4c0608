import { getKind, listKinds } from '@muster/protocol/http';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeCertificate } from '../../../test/certificate.ts';
import { type Answer, type Seen, type Standing, standIn } from '../../../test/orchestrator.ts';
import { makeHome, musterHere } from '../../../test/process.ts';

let home: Awaited<ReturnType<typeof makeHome>>;
let server: Standing;
let env: Record<string, string>;
const answers: Record<string, (seen: Seen) => Answer | undefined> = {};
const example = getKind.example.answer;

beforeAll(async () => {
  const certificate = await makeCertificate();
  server = await standIn({ tls: certificate, answers });
  home = await makeHome();
  env = { ...home.env, MUSTER_URL: server.url, MUSTER_FINGERPRINT: certificate.fingerprint };
  await musterHere(['operator', 'init'], env);
});
afterAll(async () => {
  await server.close();
  await home.remove();
});

const muster = (...args: string[]) => musterHere(['kinds', ...args], env);

test('lists kinds with the machines that support them', async () => {
  const ran = await muster('list');
  expect(ran.exit, ran.stderr).toBe(0);
  expect(ran.stdout).toMatch(
    /^KIND +PLATFORMS +FIELDS +SUPPORTED +SUMMARY *\nsysctl +linux +3 +yes +A kernel parameter *\n/,
  );
  expect(JSON.parse((await muster('list', '--json')).stdout)).toEqual(listKinds.example.answer);
});

test('shows the fields of a kind with their values and defaults', async () => {
  const ran = await muster('show', 'sysctl');
  expect(ran.exit, ran.stderr).toBe(0);
  expect(ran.stdout).toContain('sysctl  A kernel parameter\nplatforms  linux\nidentity   key\n\n');
  expect(ran.stdout).toMatch(/^key +yes +text +\S+ +Name of the parameter *$/m);
  expect(ran.stdout).toMatch(/^ensure +\S+ +present, absent +present +Desired presence of the/m);
  expect(ran.stdout).toContain(`\n\n${example.example.replace(/^/gm, '  ')}\n`);
  expect(JSON.parse((await muster('show', 'sysctl', '--json')).stdout)).toEqual(example);
});

test('shows groups of fields and sensitive fields, and notes that no agent applies the kind', async () => {
  const [field] = example.fields;
  const fields = [{ ...field, name: 'password', sensitive: true, description: 'Its password' }];
  answers.getKind = () => ({
    body: {
      ...example,
      executable: false,
      fields,
      exclusive: [
        ['a', 'b'],
        ['c', 'd'],
      ],
    },
  });
  const ran = await muster('show', 'user-windows');
  delete answers.getKind;
  expect(ran.stdout).toContain('only one   a, b\nonly one   c, d\n');
  expect(ran.stdout).toContain('Its password; never shown');
  expect(ran.stderr).toContain('Agents of this release do not apply it yet');
});

test('prints the suggestion of the orchestrator for an unknown kind', async () => {
  answers.getKind = () => ({
    code: 'kind_not_found',
    detail: 'there is no kind "sysctrl": did you mean "sysctl"?',
  });
  const ran = await muster('show', 'sysctrl');
  delete answers.getKind;
  expect(ran.exit).toBe(1);
  expect(ran.stderr).toContain('there is no kind "sysctrl": did you mean "sysctl"?');
  expect(ran.stderr).toContain('muster kinds list');
});
