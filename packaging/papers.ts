import { hash } from 'node:crypto';
import type { Build } from '@muster/protocol/executable';
import type { Component } from './shipped.ts';

/** Documents to release with the executable: a bill of materials, and the licenses of third-party components. */

const hex = (base64: string): string => Buffer.from(base64, 'base64').toString('hex');

/** Returns the package URL. Only the `@` of a scope needs encoding in names and versions. */
const purlOf = ({ name, version }: Component): string =>
  name === 'node' ? `pkg:generic/node@${version}` : `pkg:npm/${name.replace('@', '%40')}@${version}`;

/** Returns a CycloneDX bill of materials. For reproducible builds, its serial number is a digest of the content. */
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
  const digest = hash('sha256', JSON.stringify(document));
  // A version 8 UUID (RFC 9562), in which all bits except version and variant are custom.
  const uuid = `${digest.slice(0, 8)}-${digest.slice(8, 12)}-8${digest.slice(13, 16)}-a${digest.slice(17, 20)}-${digest.slice(20, 32)}`;
  return `${JSON.stringify({ ...document, serialNumber: `urn:uuid:${uuid}` }, null, 2)}\n`;
}

const line = '='.repeat(80);

/** Joins the licenses of all third-party components in the executable. */
export function licencesOfOthers(components: readonly Component[]): string {
  const parts = components.map(({ name, version, licence, text, author }) =>
    [
      `${line}\n${name} ${version}   ${licence}\n${line}`,
      text ||
        `The package declares the license ${licence} but includes no license text.${author ? ` By ${author}.` : ''}`,
    ].join('\n\n'),
  );
  return `The muster executable contains these third-party works under their own licenses.\n\n${parts.join('\n\n')}\n`;
}
