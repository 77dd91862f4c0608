import { describe, expect, test } from 'vitest';
import { blindSpot, type Footprint } from './footprint.ts';

const footprint: Footprint = new Map([
  ['/opt', 'l /data/opt'],
  ['/var/lib', 'd'],
  ['/var/lib/db', 'd'],
  ['/var/lib/db/data', 'm'],
  ['/var/lib/web', 'l /data/web'],
  ['/srv/site', 'm'],
  ['/etc/web', 'd'],
]);

describe('a blind spot', () => {
  test('reports a path behind a link or on another file system as not covered', () => {
    expect(blindSpot(['/etc/web', '/opt/x'], footprint)).toBe('/opt');
    expect(blindSpot(['/var/lib/web/site'], footprint)).toBe('/var/lib/web');
    expect(blindSpot(['/srv/site'], footprint)).toBe('/srv/site');
    expect(blindSpot(['/srv/site/a/b'], footprint)).toBe('/srv/site');
    expect(blindSpot(['/var/lib/db'], footprint)).toBe('/var/lib/db/data');
  });

  test('reports scanned paths as covered, including a link itself', () => {
    expect(blindSpot(['/etc/web', '/etc/web/deep/er', '/var/lib/dbx', '/var/lib/web'], footprint)).toBeNull();
  });
});
