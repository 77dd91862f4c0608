import {
  createSecret,
  listSecrets,
  removeSecret,
  rotateSecretsKey,
  type Secret,
  updateSecret,
} from '@muster/protocol/http';
import { queryOptions } from '@tanstack/react-query';
import { call } from './client.ts';
import { queryClient } from './query-client.ts';
import { keys } from './query-keys.ts';

/** All secrets, without their values: those are never given back. */
export const secretsQuery = queryOptions({
  queryKey: keys.secrets,
  queryFn: ({ signal }) => call(listSecrets, { all: true, signal }),
});

/** What a form says of a secret. */
export interface SecretDraft {
  readonly description: string;
  /** RFC 3339; null: never. */
  readonly expires_at: string | null;
  /** Null: any approved agent. */
  readonly restriction: Secret['restriction'];
  /** Null: as it is. */
  readonly value: string | null;
}

const stale = () => queryClient.invalidateQueries({ queryKey: keys.secrets });

export async function storeSecret(name: string, wish: SecretDraft): Promise<void> {
  await call(createSecret, { body: { ...bodyOf(wish), name, value: wish.value ?? '' } as never });
  await stale();
}

export async function changeSecret(name: string, wish: SecretDraft): Promise<void> {
  await call(updateSecret, { params: { name }, body: bodyOf(wish) as never });
  await stale();
}

const bodyOf = ({ description, expires_at, restriction, value }: SecretDraft) => ({
  description,
  expires_at,
  restriction: restriction ?? {},
  ...(value === null ? {} : { value }),
});

export async function removeSecretForGood(name: string): Promise<void> {
  await call(removeSecret, { params: { name } });
  await stale();
}

export const rotateKey = () => call(rotateSecretsKey, {});
