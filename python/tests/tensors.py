"""Programs of tinygrad that are tested with both devices, `DEV=TEGRA` and `DEV=TEGRA+NV`."""

# The results of small programs are those of numpy.
AS_NUMPY = """
rng = np.random.default_rng(3)
a, b = rng.standard_normal((2, 33, 33), dtype=np.float32)
def same(got, want, tol=1e-4): np.testing.assert_allclose(got.numpy(), want, rtol=tol, atol=tol)
same(Tensor(a) @ Tensor(b), a @ b)
same(Tensor(a).softmax(), np.exp(a) / np.exp(a).sum(1, keepdims=True))
same(Tensor(a).sum(axis=0), a.sum(axis=0)); same(Tensor(a).max(), a.max())
same(Tensor(a).sin(), np.sin(a)); same(Tensor(a).permute(1, 0).contiguous() + 1, a.T + 1)
assert ((Tensor(a) > 0).where(Tensor(a), 0).numpy() == np.maximum(a, 0)).all()
assert (Tensor(np.arange(1000, dtype=np.int64)) // 7).numpy().tolist() == [i // 7 for i in range(1000)]
"""
