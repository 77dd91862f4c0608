import { inspect } from 'node:util';
import { describe, expect, test } from 'vitest';
import { DatabaseUrl, isDatabaseUrl } from './database-url.ts';

describe('DatabaseUrl', () => {
  const url = new DatabaseUrl(
    'postgres://muster:s%40crET:x@db.example:5432/fleet?sslmode=verify-full&password=s%40crET',
  );

  test('reveals its password only through `reveal`', () => {
    expect(url.reveal()).toContain('s%40crET');
    const shown = 'postgres://muster:••••@db.example:5432/fleet?sslmode=verify-full&password=••••';
    expect(String(url)).toBe(shown);
    expect(JSON.stringify({ url })).toBe(JSON.stringify({ url: shown }));
    expect(inspect(url, { depth: 9, showHidden: true })).toBe(shown);
    expect(`${Object.values(url)}`).toBe('');
  });

  test('prints a URL in full if it has no password', () => {
    expect(String(new DatabaseUrl('postgresql:///fleet?user=muster&host=/run/postgresql'))).toBe(
      'postgresql:///fleet?user=muster&host=/run/postgresql',
    );
  });

  test('refuses URLs that are not PostgreSQL URLs without repeating them in the error', () => {
    for (const given of ['', 'mysql://u:secret@h/d', 'postgres://u:secret@h:port/d', 'u:secret@h/d']) {
      expect(isDatabaseUrl(given)).toBe(false);
      expect(() => new DatabaseUrl(given)).toThrow(/^must look like postgres:.*database$/);
    }
  });
});
