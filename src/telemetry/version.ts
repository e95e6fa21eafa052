import postgram from '../../package.json' with { type: 'json' }

/** The version of this process, as in its package.json. */
export const VERSION: string = postgram.version
