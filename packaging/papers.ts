import { createHash } from 'node:crypto';
import type { Build } from '@muster/protocol/executable';
import type { Component } from './shipped.ts';

/** What goes with the executable for those who ask what is in it: a bill of materials, and the licences of others. */

const hex = (base64: string): string => Buffer.from(base64, 'base64').toString('hex');

/** Numbers, dots and letters as they stand in a package's name and version; `@` and `/` of a scope are told apart. */
const purlOf = ({ name, version }: Component): string =>
  name === 'node' ? `pkg:generic/node@${version}` : `pkg:npm/${name.replace('@', '%40')}@${version}`;

/** Text of a CycloneDX bill of materials. The same for the same build: its number is made of what it says. */
export function billOfMaterials(components: readonly Component[], { version, commit, date }: Build): string {
  const document = {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: {
      timestamp: date,
      component: {
        type: 'application',
        'bom-ref': 'muster',
        name: 'muster',
        version,
        licenses: [{ license: { id: 'Apache-2.0' } }],
        ...(commit ? { properties: [{ name: 'git:commit', value: commit }] } : {}),
      },
    },
    components: components.map((component) => {
      const { name, version, licence, homepage, integrity } = component;
      const purl = purlOf(component);
      const isExpression = / (OR|AND|WITH) /.test(licence);
      const digest = /^sha512-(.+)$/.exec(integrity ?? '')?.[1];
      return {
        type: name === 'node' ? 'platform' : 'library',
        'bom-ref': purl,
        name,
        version,
        purl,
        licenses: isExpression
          ? [{ expression: licence }]
          : [{ license: /^[A-Za-z0-9.+-]+$/.test(licence) ? { id: licence } : { name: licence } }],
        ...(digest ? { hashes: [{ alg: 'SHA-512', content: hex(digest) }] } : {}),
        ...(homepage ? { externalReferences: [{ type: 'website', url: homepage }] } : {}),
      };
    }),
    dependencies: [{ ref: 'muster', dependsOn: components.map(purlOf) }],
  };
  const digest = createHash('sha256').update(JSON.stringify(document)).digest('hex');
  // Of the eighth kind: 128 bits of one's own choice but for those that say so.
  const uuid = `${digest.slice(0, 8)}-${digest.slice(8, 12)}-8${digest.slice(13, 16)}-a${digest.slice(17, 20)}-${digest.slice(20, 32)}`;
  return `${JSON.stringify({ ...document, serialNumber: `urn:uuid:${uuid}` }, null, 2)}\n`;
}

const line = '='.repeat(80);

/** The licences of what is in the executable, one after the other. */
export function licencesOfOthers(components: readonly Component[]): string {
  const parts = components.map(({ name, version, licence, text, author }) =>
    [
      `${line}\n${name} ${version}   ${licence}\n${line}`,
      text || `The package names its licence, ${licence}, and brings no text of it.${author ? ` By ${author}.` : ''}`,
    ].join('\n\n'),
  );
  return `The muster executable contains these works of others, under their own licences.\n\n${parts.join('\n\n')}\n`;
}
