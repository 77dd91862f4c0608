import {
  createSecret,
  listSecrets,
  removeSecret,
  rotateSecretsKey,
  type Secret,
  updateSecret,
} from '@muster/protocol/http';
import { call } from './client.ts';
import { queryClient, routeQuery } from './query-client.ts';
import { keys } from './query-keys.ts';

/** All secrets, without their values. The API never returns values. */
export const secretsQuery = routeQuery(keys.secrets, listSecrets, { all: true });

export interface SecretDraft {
  readonly description: string;
  /** RFC 3339; null for a secret that never expires. */
  readonly expires_at: string | null;
  /** Null to allow every approved agent. */
  readonly restriction: Secret['restriction'];
  /** Null to keep the current value. */
  readonly value: string | null;
}

const invalidate = () => queryClient.invalidateQueries({ queryKey: keys.secrets });

export async function storeSecret(name: string, draft: SecretDraft): Promise<void> {
  await call(createSecret, { body: { ...bodyOf(draft), name, value: draft.value ?? '' } as never });
  await invalidate();
}

export async function changeSecret(name: string, draft: SecretDraft): Promise<void> {
  await call(updateSecret, { params: { name }, body: bodyOf(draft) as never });
  await invalidate();
}

const bodyOf = ({ description, expires_at, restriction, value }: SecretDraft) => ({
  description,
  expires_at,
  restriction: restriction ?? {},
  ...(value === null ? {} : { value }),
});

export async function removeSecretForGood(name: string): Promise<void> {
  await call(removeSecret, { params: { name } });
  await invalidate();
}

export const rotateKey = () => call(rotateSecretsKey, {});
