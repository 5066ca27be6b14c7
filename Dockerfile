FROM condaforge/miniforge3:latest
LABEL io.github.snakemake.containerized="true"
LABEL io.github.snakemake.conda_env_hash="7e88d600e08e920becedea59c06c952c5a299ebb5935c3ffbccdc38b855c9559"
# Conda environment:
#   source: envs/figures.yaml
#   prefix: /conda-envs/ce59ee878c1e0c93674fe9333ecb16fb
#   # The environment of the figures rules. Written by `make lock`: edit environments.toml instead.
#   name: manybody-figures
#   channels:
#     - conda-forge
#     - nodefaults
#   dependencies:
#     - python=3.11
#     - pip=25
#     - pip:
#         - annotated-types==0.8.0
#         - anyio==4.16.0
#         - click==8.5.1
#         - contourpy==1.3.3
#         - cycler==0.12.1
#         - docutils==0.22.4
#         - filelock==4.2.11
#         - fonttools==4.68.0
#         - fsspec==2026.9.0
#         - h11==0.16.0
#         - hf-xet==1.8.0
#         - httpcore2==2.16.2
#         - httpx2==2.16.2
#         - huggingface-hub==2.4.0
#         - idna==3.20
#         - jinja2==3.1.6
#         - kiwisolver==1.5.1
#         - llvmlite==0.50.0
#         - markupsafe==3.0.4
#         - matplotlib==3.11.2
#         - numba==0.68.1
#         - numpy==2.4.6
#         - packaging==25.0
#         - pandas==3.1.1
#         - pillow==13.0.0
#         - psutil==7.2.2
#         - pyarrow==26.0.1
#         - pydantic==2.14.3
#         - pydantic-core==2.50.4
#         - pyparsing==3.3.3
#         - python-dateutil==4.0.0
#         - pyyaml==6.0.3
#         - safetensors==0.8.0
#         - scipy==1.17.1
#         - tokenizers==0.23.3
#         - tqdm==4.70.1
#         - truststore==0.10.5
#         - typing-extensions==4.16.0
#         - typing-inspection==0.4.5
#         - tzdata==2026.6
RUN mkdir -p /conda-envs/ce59ee878c1e0c93674fe9333ecb16fb
COPY envs/figures.yaml /conda-envs/ce59ee878c1e0c93674fe9333ecb16fb/environment.yaml
# Conda environment:
#   source: envs/learning.yaml
#   prefix: /conda-envs/5843441c7f625f1a0edf7c52cdf23d7a
#   # The environment of the learning rules. Written by `make lock`: edit environments.toml instead.
#   name: manybody-learning
#   channels:
#     - conda-forge
#     - nodefaults
#   dependencies:
#     - python=3.11
#     - pip=25
#     - pip:
#         - accelerate==1.15.0
#         - annotated-doc==0.0.7
#         - annotated-types==0.8.0
#         - anyio==4.16.0
#         - arviz-stats==0.8.0
#         - biopython==1.88
#         - click==8.5.1
#         - contourpy==1.3.3
#         - cycler==0.12.1
#         - datasketch==2.0.0
#         - docutils==0.22.4
#         - filelock==4.2.11
#         - fonttools==4.68.0
#         - fsspec==2026.9.0
#         - h11==0.16.0
#         - hf-xet==1.8.0
#         - httpcore2==2.16.2
#         - httpx2==2.16.2
#         - huggingface-hub==2.4.0
#         - idna==3.20
#         - jinja2==3.1.6
#         - kiwisolver==1.5.1
#         - llvmlite==0.50.0
#         - markdown-it-py==4.3.0
#         - markupsafe==3.0.4
#         - matplotlib==3.11.2
#         - mdurl==0.1.2
#         - mpmath==1.3.0
#         - networkx==3.6.1
#         - numba==0.68.1
#         - numpy==2.4.6
#         - packaging==25.0
#         - pandas==3.1.1
#         - pillow==13.0.0
#         - psutil==7.2.2
#         - pyarrow==26.0.1
#         - pydantic==2.14.3
#         - pydantic-core==2.50.4
#         - pygments==2.21.0
#         - pyhmmer==0.12.3
#         - pyparsing==3.3.3
#         - python-dateutil==4.0.0
#         - pyyaml==6.0.3
#         - regex==2026.11.15
#         - rich==15.0.0
#         - safetensors==0.8.0
#         - scipy==1.17.1
#         - setuptools==84.2.1
#         - shellingham==1.5.4
#         - sympy==1.14.0
#         - threadpoolctl==3.8.0
#         - tokenizers==0.23.3
#         - torch==2.13.0
#         - tqdm==4.70.1
#         - transformers==5.23.0
#         - truststore==0.10.5
#         - typer==0.29.2
#         - typing-extensions==4.16.0
#         - typing-inspection==0.4.5
#         - tzdata==2026.6
RUN mkdir -p /conda-envs/5843441c7f625f1a0edf7c52cdf23d7a
COPY envs/learning.yaml /conda-envs/5843441c7f625f1a0edf7c52cdf23d7a/environment.yaml
# Conda environment:
#   source: envs/numerics.yaml
#   prefix: /conda-envs/3e69cde94e763ea21c567d72015797a9
#   # The environment of the numerics rules. Written by `make lock`: edit environments.toml instead.
#   name: manybody-numerics
#   channels:
#     - conda-forge
#     - nodefaults
#   dependencies:
#     - python=3.11
#     - pip=25
#     - pip:
#         - anyio==4.16.0
#         - arviz-stats==0.8.0
#         - biopython==1.88
#         - click==8.5.1
#         - filelock==4.2.11
#         - fsspec==2026.9.0
#         - h11==0.16.0
#         - hf-xet==1.8.0
#         - httpcore2==2.16.2
#         - httpx2==2.16.2
#         - huggingface-hub==2.4.0
#         - idna==3.20
#         - llvmlite==0.50.0
#         - numba==0.68.1
#         - numpy==2.4.6
#         - packaging==25.0
#         - pandas==3.1.1
#         - psutil==7.2.2
#         - pyarrow==26.0.1
#         - python-dateutil==4.0.0
#         - pyyaml==6.0.3
#         - safetensors==0.8.0
#         - scipy==1.17.1
#         - tokenizers==0.23.3
#         - tqdm==4.70.1
#         - truststore==0.10.5
#         - typing-extensions==4.16.0
#         - tzdata==2026.6
RUN mkdir -p /conda-envs/3e69cde94e763ea21c567d72015797a9
COPY envs/numerics.yaml /conda-envs/3e69cde94e763ea21c567d72015797a9/environment.yaml

RUN conda env create --prefix /conda-envs/ce59ee878c1e0c93674fe9333ecb16fb --file /conda-envs/ce59ee878c1e0c93674fe9333ecb16fb/environment.yaml && \
    conda env create --prefix /conda-envs/5843441c7f625f1a0edf7c52cdf23d7a --file /conda-envs/5843441c7f625f1a0edf7c52cdf23d7a/environment.yaml && \
    conda env create --prefix /conda-envs/3e69cde94e763ea21c567d72015797a9 --file /conda-envs/3e69cde94e763ea21c567d72015797a9/environment.yaml && \
    conda clean --all -y
