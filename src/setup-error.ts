/** An error that the operator fixes: printed as its message alone, without a stack. */
export class SetupError extends Error {}
