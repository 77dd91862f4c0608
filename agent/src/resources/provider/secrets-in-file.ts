import type { ResolvedResource } from '@muster/protocol/module';
import type { Machine } from './provider.ts';

const fileKinds = [
  ...(['file-unix', 'line-unix', 'block-unix'] as const),
  ...(['ini-unix', 'json-unix', 'yaml-unix', 'toml-unix'] as const),
];

/** Reports whether a resource of the operation writes a secret to the file of this resource. */
export function hasSecretInFile(resource: ResolvedResource, machine: Pick<Machine, 'resourcesOf'>): boolean {
  const pathOf = ({ body }: ResolvedResource) => (body as { path: string }).path;
  const hasSecret = ({ sensitive_fields }: ResolvedResource) => sensitive_fields.length > 0;
  return (
    hasSecret(resource) ||
    fileKinds.some((type) =>
      machine.resourcesOf(type).some((other) => hasSecret(other) && pathOf(other) === pathOf(resource)),
    )
  );
}
