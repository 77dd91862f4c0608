import { existsSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { type Route, routes } from '@muster/protocol/http';
import { moduleJsonSchema } from '@muster/protocol/module';
import type { FastifyInstance } from 'fastify';
import { type Browser, chromium } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { testApp } from '../../../test/app-fixture.ts';

const executablePath = '/usr/bin/chromium';

let app: FastifyInstance;
let url: string;
beforeAll(async () => {
  app = testApp();
  url = await app.listen({ host: '127.0.0.1', port: 0 });
});
afterAll(() => app.close());

describe('API reference', () => {
  test('serves a page that references only local files, with a policy that forbids other hosts', async () => {
    const [one, other] = [await app.inject('/docs'), await app.inject('/docs')];
    expect(one.statusCode).toBe(200);
    expect(one.headers['content-type']).toBe('text/html; charset=utf-8');
    const policy = String(one.headers['content-security-policy']);
    expect(policy).toMatch(/^default-src 'none'; script-src 'self'; /);
    expect(policy).not.toMatch(/https?:|\*|unsafe-eval/);
    expect(policy).not.toBe(other.headers['content-security-policy']);
    expect(one.body).not.toMatch(/(src|href)="(https?:)?\/\//);
    expect(one.body).not.toMatch(/<script>|<style/);
    for (const [, address] of one.body.matchAll(/<script src="([^"]+)"/g)) {
      const script = await app.inject(address as string);
      expect(script.statusCode, address).toBe(200);
      expect(script.headers['content-type']).toMatch(/^text\/javascript/);
    }
  });

  test('compresses the reference script for clients that accept compression, and allows caching by its hash', async () => {
    const { body } = await app.inject('/docs');
    const address = /"(\/docs\/reference\.js\?v=[0-9a-f]{16})"/.exec(body)?.[1] as string;
    const packed = await app.inject({ url: address, headers: { 'accept-encoding': 'gzip, br' } });
    const plain = await app.inject(address);
    expect(packed.headers).toMatchObject({ 'content-encoding': 'gzip', vary: 'accept-encoding' });
    expect(gunzipSync(packed.rawPayload).equals(plain.rawPayload)).toBe(true);
    expect(plain.headers['cache-control']).toBe('public, max-age=31536000, immutable');
    expect((await app.inject('/docs/reference.js?v=0')).headers['cache-control']).toBe('no-store');
  });

  test('serves the module schema', async () => {
    const answer = await app.inject('/schemas/module/v1.json');
    expect(answer.headers['content-type']).toMatch(/^application\/schema\+json/);
    expect(answer.json()).toEqual(moduleJsonSchema());
  });
});

describe.runIf(existsSync(executablePath) || process.env.CI === 'true')('in a browser', () => {
  let browser: Browser;
  beforeAll(async () => {
    const args = ['--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking'];
    browser = await chromium.launch({
      executablePath,
      args: [...args, '--disable-component-update', '--disable-sync'],
    });
  });
  afterAll(() => browser.close());

  test('renders the API description without requests to other hosts or violations of its policy', async () => {
    const page = await browser.newPage();
    // The runner stops a test that hangs. A busy machine may need more than 30 seconds.
    page.setDefaultTimeout(0);
    const requested: string[] = [];
    const complaints: string[] = [];
    page.on('request', (request) => requested.push(request.url()));
    page.on('console', (message) => {
      if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text());
    });
    page.on('pageerror', (error) => complaints.push(error.message));
    await page.goto(`${url}/docs`);
    // Expands the first route's group.
    const { summary } = routes[0] as Route;
    await page.getByText(summary).first().click();
    await page.locator('h3').filter({ hasText: summary }).first().waitFor();
    expect(complaints).toEqual([]);
    const others = requested.filter((address) => !address.startsWith(`${url}/`) && !address.startsWith('data:'));
    expect(others).toEqual([]);
    expect(requested).toContain(`${url}/openapi.json`);
  });
});

test('serves the schemas of the configuration files at their IDs', async () => {
  const app = testApp({}, { configSchemas: { '/schemas/agent.json': () => ({ $id: '/schemas/agent.json' }) } });
  const answer = await app.inject({ url: '/schemas/agent.json' });
  expect([answer.statusCode, answer.headers['content-type'], answer.json()]).toEqual([
    200,
    'application/schema+json; charset=utf-8',
    { $id: '/schemas/agent.json' },
  ]);
  await app.close();
});
